// The models of this library, for a sketch. @MARK@.
#pragma once
@HEADERLINES@
