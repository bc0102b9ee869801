// A libcuda.so.1 for stub_runtime.cpp: what LibTorch asks the driver by itself is which GPUs have a
// context. The other names have to be there for it to load the library.

extern "C" {

int stub_has_context(int gpu);  // stub_runtime.cpp

int cuDevicePrimaryCtxGetState(int gpu, unsigned int* flags, int* active) {
  *flags = 0;
  *active = stub_has_context(gpu);
  return 0;
}

#define NOT_IN_THE_STUB(name) \
  int name() { return 801; }  // CUDA_ERROR_NOT_SUPPORTED
NOT_IN_THE_STUB(cuCtxGetCurrent)
NOT_IN_THE_STUB(cuCtxSetCurrent)
NOT_IN_THE_STUB(cuDeviceGet)
NOT_IN_THE_STUB(cuDeviceGetAttribute)
NOT_IN_THE_STUB(cuDevicePrimaryCtxRetain)
NOT_IN_THE_STUB(cuFuncGetAttribute)
NOT_IN_THE_STUB(cuFuncSetAttribute)
NOT_IN_THE_STUB(cuFuncSetCacheConfig)
NOT_IN_THE_STUB(cuGetErrorString)
NOT_IN_THE_STUB(cuLaunchCooperativeKernel)
NOT_IN_THE_STUB(cuLaunchKernel)
NOT_IN_THE_STUB(cuLinkAddData_v2)
NOT_IN_THE_STUB(cuLinkComplete)
NOT_IN_THE_STUB(cuLinkCreate_v2)
NOT_IN_THE_STUB(cuModuleGetFunction)
NOT_IN_THE_STUB(cuModuleLoad)
NOT_IN_THE_STUB(cuModuleLoadData)
NOT_IN_THE_STUB(cuModuleLoadDataEx)
NOT_IN_THE_STUB(cuModuleUnload)
NOT_IN_THE_STUB(cuOccupancyMaxActiveBlocksPerMultiprocessor)
NOT_IN_THE_STUB(cuPointerGetAttribute)
NOT_IN_THE_STUB(cuTensorMapEncodeTiled)
#undef NOT_IN_THE_STUB

}  // extern "C"
