"""Compute the indices that topk returns for equal elements. ExecuTorch and PyTorch do not define them,
but they follow from the steps of C++'s partial_sort, nth_element and sort in the GNU library."""

FEW = 64  # times k elements, or more: a heap holds the k elements
MIN_PARTED = 17


def topk_indices(row, k, largest=True, is_sorted=True, counts=None):
    """Return the indices of the first k elements of a list. `counts`, a list, gets "select" and "sort"
    for each range that a heap orders because it was partitioned too often."""
    keys = [(1, 0) if x != x else (0, x) for x in row]

    def before(i, j):
        return keys[i] > keys[j] if largest else keys[i] < keys[j]

    n, v = len(row), list(range(len(row)))
    counts = [] if counts is None else counts
    if k * FEW <= n:
        _keep(v, 0, k, n, before)
        _order_heap(v, 0, k, before)
    else:
        _select(v, k, before, counts)
        if is_sorted:
            _sort(v, k - 1, before, counts)
    return v[:k]


def hard_to_select(n, k):
    """Return a row of n ints whose least k are hard to find. Each value is chosen when it is compared,
    so that a partition hardly shrinks its range."""
    values, known, candidate = [n] * n, 0, 0

    def before(i, j):
        nonlocal known, candidate
        if values[i] == values[j] == n:
            values[i if i == candidate else j] = known
            known += 1
        candidate = i if values[i] == n else j if values[j] == n else candidate
        return values[i] < values[j]

    _select(list(range(n)), k, before, [])
    return values


def _max_parts(n):
    return 2 * (max(n, 1).bit_length() - 1)


def _select(v, k, before, counts):
    first, last, parts = 0, len(v), _max_parts(len(v))
    while last - first > 3:
        if parts == 0:
            counts.append("select")
            _keep(v, first, k, last, before)
            v[first], v[k - 1] = v[k - 1], v[first]
            return
        parts -= 1
        cut = _part(v, first, last, before)
        first, last = (cut, last) if cut < k else (first, cut)
    _insert(v, first, last, before)


def _sort(v, n, before, counts):
    left = [(0, n, _max_parts(n))]
    while left:
        first, last, parts = left.pop()
        while last - first >= MIN_PARTED and parts:
            parts -= 1
            cut = _part(v, first, last, before)
            left.append((cut, last, parts))
            last = cut
        if last - first >= MIN_PARTED:
            counts.append("sort")
            _keep(v, first, last, last, before)
            _order_heap(v, first, last, before)
        else:
            _insert(v, first, last, before)


def _part(v, first, last, before):
    low, high, end = first + 1, first + (last - first) // 2, last - 1
    if not before(v[low], v[high]):
        low, high = high, low
    median = high if before(v[high], v[end]) else end if before(v[low], v[end]) else low
    v[first], v[median] = v[median], v[first]
    i, j = first + 1, last - 1
    while True:
        while before(v[i], v[first]):
            i += 1
        while before(v[first], v[j]):
            j -= 1
        if i >= j:
            return i
        v[i], v[j] = v[j], v[i]
        i, j = i + 1, j - 1


def _insert(v, first, last, before):
    for i in range(first + 1, last):
        to = i
        while to > first and before(v[i], v[to - 1]):
            to -= 1
        v.insert(to, v.pop(i))


def _keep(v, first, middle, last, before):
    """Make a heap of [first, middle) with the first elements of [first, last), the last of them on
    top."""
    n = middle - first
    for i in reversed(range(n // 2)):
        _sift(v, first, i, n, v[first + i], before)
    for i in range(middle, last):
        if before(v[i], v[first]):
            index, v[i] = v[i], v[first]
            _sift(v, first, 0, n, index, before)


def _order_heap(v, first, last, before):
    while last - first > 1:
        last -= 1
        index, v[last] = v[last], v[first]
        _sift(v, first, 0, last - first, index, before)


def _sift(v, first, hole, n, index, before):
    top = hole
    while 2 * hole + 1 < n:
        below = min(2 * hole + 2, n - 1)
        if below == 2 * hole + 2 and before(v[first + below], v[first + below - 1]):
            below -= 1
        v[first + hole], hole = v[first + below], below
    while hole > top and before(v[first + (hole - 1) // 2], index):
        v[first + hole], hole = v[first + (hole - 1) // 2], (hole - 1) // 2
    v[first + hole] = index
