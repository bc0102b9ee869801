// Fourier transforms and windows.

#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

std::string optional_int(NodeContext& c, std::size_t input) {
  return c.has(input) ? c.int_scalar(input) : "None";
}

void dft(NodeContext& c) {
  const Expression axis = c.opset() < 20 ? Expression(c.int_or("axis", 1))
                          : c.has(2)     ? c.int_scalar(2)
                                         : "-2";
  const bool inverse = c.int_or("inverse", 0) != 0;
  const bool onesided = c.int_or("onesided", 0) != 0;
  c.set(0, call(c.helper("_dft"), c.tensor(0), optional_int(c, 1), axis, inverse, onesided),
        c.type(0), c.rank(0));
}

void stft(NodeContext& c) {
  const bool onesided = c.int_or("onesided", 1) != 0;
  c.set(0,
        call(c.helper("_stft"), c.tensor(0), c.int_scalar(1), optional_tensor(c, 2),
             optional_int(c, 3), onesided),
        c.type(0), 4);
}

// `more` has the arguments of the function after its own switch for periodic windows.
void window(NodeContext& c, const char* function, const Arguments& more) {
  const ElementType type = c.type_attribute("output_datatype", ElementType::float32);
  const ElementType computed = is_floating(type) ? type : ElementType::float32;
  const bool periodic = c.int_or("periodic", 1) != 0;
  const Expression made = call(function, c.int_scalar(0), periodic, more,
                               keyword("dtype", c.dtype(computed)), keyword("device", c.device()));
  c.set(0, computed == type ? made : method(made, "to", c.dtype(type)), type, 1);
}

void hann_window(NodeContext& c) { window(c, "torch.hann_window", Arguments()); }
// ONNX has 25/46, PyTorch 0.54.
void hamming_window(NodeContext& c) {
  window(c, "torch.hamming_window", Arguments(binary(25.0, "/", 46.0), binary(21.0, "/", 46.0)));
}
void blackman_window(NodeContext& c) { window(c, "torch.blackman_window", Arguments()); }

constexpr Operator kSignalOperators[] = {
    {"BlackmanWindow", 17, blackman_window, Folding::product, Gradient::stops},
    {"DFT", 17, dft},
    {"HammingWindow", 17, hamming_window, Folding::product, Gradient::stops},
    {"HannWindow", 17, hann_window, Folding::product, Gradient::stops},
    {"STFT", 17, stft},
};

}  // namespace

std::span<const Operator> signal_operators() { return kSignalOperators; }

}  // namespace decent::onnx
