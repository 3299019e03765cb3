// The models of this library, for a program. @MARK@.
#pragma once
@HEADERLINES@
