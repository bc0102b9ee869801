// A library for GPUs of a build that is not this one.
extern "C" const char* decent_cuda_build_id() { return "another-build"; }
