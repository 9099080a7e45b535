// A function has the name.
extern "C" int troupe_extension() { return 42; }
