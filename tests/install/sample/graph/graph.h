// The sample's own: its path is that of a header of Troupe's sources.
#pragma once
inline int OwnGraphHeader() { return 1; }
