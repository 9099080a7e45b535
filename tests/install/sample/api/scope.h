// The sample's own: its path is that of a header of Troupe's sources.
#pragma once
inline int OwnScopeHeader() { return 2; }
