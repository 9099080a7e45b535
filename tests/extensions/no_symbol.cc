// A shared library like any other.
extern "C" int AnswerOfALibrary() { return 42; }
