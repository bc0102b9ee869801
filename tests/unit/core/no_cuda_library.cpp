// A shared library that has nothing to do with GPUs.
extern "C" int decent_unrelated() { return 1; }
