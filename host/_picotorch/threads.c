// Share the loops of an execution between threads, see kernels/arch/threads.h.
//
// The threads begin with the first loop that is large enough, and end with the execution. Between
// executions there are none, however an execution ends, so a fork needs no care.
#define _POSIX_C_SOURCE 200809L
#include "arch/threads.h"
#include "core/record.h"
#include <picotorch/picotorch.h>

// Execute like pt_execute and pt_context_execute, with `threads` threads that share the loops.
int pt_execute_by_threads(pt_method *method, int threads, pt_error *error);
int pt_context_execute_by_threads(pt_context *c, int threads);
// Set the minimum steps of a shared loop, for tests. Return the minimum before.
int64_t pt_share_from(int64_t steps);

#if PT_HAS_THREADS
#include <pthread.h>
#include <signal.h>

enum {
    MAX_THREADS = 64,
    PARTS = 8, // minimum parts of a shared loop
    FIRST = 4, // loops of the minimum size before other threads start, which takes as long
    NO_MORE = INT32_MAX / 2, // rounds
};

// An interrupt waits for the end of a started round.
static const int64_t max_of_round = (int64_t)1 << 31;

// Minimum steps of a shared loop: 50 microseconds or more. Waking a thread takes 20.
static int64_t min_steps = 1 << 21;

int64_t pt_share_from(int64_t steps) {
    const int64_t before = min_steps;
    min_steps = steps;
    return before;
}

// The rounds of a loop that a thread has taken. Without workers it has taken all.
typedef struct turn {
    struct workers *w;
    int32_t round, begin, end;
} turn;

// The threads of an execution, and the loop that they share. `lock` protects all members that
// threads use.
typedef struct workers {
    pthread_mutex_t lock;
    pthread_cond_t begins, ends;
    struct workers *outer; // the outer execution, in which a delegate or a signal handler began
                           // this one
    turn outer_turn;
    int wanted, started; // in addition to the executing thread
    pthread_t threads[MAX_THREADS];
    bool quits;    // the execution ends
    int64_t steps; // steps of the large loops so far
    // the loop
    uint32_t number; // number of the loop in the execution
    bool is_over;    // all rounds are taken
    int busy;        // threads in the loop, in addition to the executing one
    pt_context context;
    pt_shared_loop *loop;
    const void *task;
    int32_t next, some; // the first free round; rounds that are taken at a time
} workers;

static __thread workers *own_workers; // workers of the execution in this thread
static __thread turn own_turn;

bool pt_skips_round(void) {
    turn *t = &own_turn;
    if (!t->w) {
        return false;
    }
    const int32_t round = t->round++;
    if (round == t->end) {
        pthread_mutex_lock(&t->w->lock);
        t->begin = t->w->next;
        t->end = t->w->next += t->w->some;
        pthread_mutex_unlock(&t->w->lock);
    }
    return round < t->begin;
}

static int run_loop(workers *w, pt_context *c, pt_shared_loop *loop, const void *task) {
    own_turn = (turn){.w = w};
    const int error = loop(c, task);
    own_turn.w = NULL;
    return error;
}

static void *work(void *argument) {
    workers *w = argument;
    uint32_t seen = 0;
    pthread_mutex_lock(&w->lock);
    while (!w->quits) {
        if (w->number == seen || w->is_over) {
            pthread_cond_wait(&w->begins, &w->lock);
            continue;
        }
        seen = w->number;
        w->busy++;
        pt_context own = w->context;
        pthread_mutex_unlock(&w->lock);
        run_loop(w, &own, w->loop, w->task);
        pthread_mutex_lock(&w->lock);
        if (--w->busy == 0) {
            pthread_cond_signal(&w->ends);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

// Signals go to Python's threads. If the system provides fewer threads, these share the loops.
static void start(workers *w) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (w->started < w->wanted && pthread_create(&w->threads[w->started], NULL, work, w) == 0) {
        w->started++;
    }
    w->wanted = w->started;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool pt_shares(int64_t steps, int64_t round) {
    workers *w = own_workers;
    if (!w || steps < min_steps || steps <= round || round > max_of_round) {
        return false;
    }
    w->steps += steps;
    return w->steps >= FIRST * min_steps;
}

int pt_share_loop(pt_context *c, pt_shared_loop *loop, const void *task, int64_t round) {
    workers *w = own_workers;
    if (w->started < w->wanted) {
        start(w);
    }
    pthread_mutex_lock(&w->lock);
    w->number++;
    w->is_over = false;
    w->context = *c;
    w->context.poll = NULL; // only this thread polls
    w->loop = loop;
    w->task = task;
    w->next = 0;
    w->some = round > 0 && round < min_steps / PARTS ? (int32_t)(min_steps / PARTS / round) : 1;
    pthread_cond_broadcast(&w->begins);
    pthread_mutex_unlock(&w->lock);
    const int error = run_loop(w, c, loop, task);
    pthread_mutex_lock(&w->lock);
    w->is_over = true;
    w->next = NO_MORE; // after an error, other threads would take the remaining rounds
    while (w->busy > 0) {
        pthread_cond_wait(&w->ends, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return error;
}

static void begin(workers *w, int threads) {
    w->wanted = (threads < MAX_THREADS ? threads : MAX_THREADS) - 1;
    w->outer = own_workers;
    w->outer_turn = own_turn;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->begins, NULL);
    pthread_cond_init(&w->ends, NULL);
    own_workers = threads > 1 ? w : NULL;
    own_turn.w = NULL;
}

static void end(workers *w) {
    own_workers = w->outer;
    own_turn = w->outer_turn;
    pthread_mutex_lock(&w->lock);
    w->quits = true;
    pthread_cond_broadcast(&w->begins);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->started; i++) {
        pthread_join(w->threads[i], NULL);
    }
    pthread_cond_destroy(&w->ends);
    pthread_cond_destroy(&w->begins);
    pthread_mutex_destroy(&w->lock);
}

#else

typedef struct workers {
    int none;
} workers;

static void begin(workers *w, int threads) {
    (void)w, (void)threads;
}

static void end(workers *w) {
    (void)w;
}

int64_t pt_share_from(int64_t steps) {
    return steps;
}

#endif

int pt_execute_by_threads(pt_method *method, int threads, pt_error *error) {
    workers w = {0};
    begin(&w, threads);
    const int code = pt_execute(method, error);
    end(&w);
    return code;
}

int pt_context_execute_by_threads(pt_context *c, int threads) {
    workers w = {0};
    begin(&w, threads);
    const int code = pt_context_execute(c);
    end(&w);
    return code;
}
