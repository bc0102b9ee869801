#include "decent/pt2/translate/argument_text.h"

#include <cstdint>
#include <variant>

#include "decent/core/script_text.h"
#include "decent/core/text.h"

namespace decent::pt2 {
namespace {

/// One overload for each kind of argument.
class Writer {
 public:
  explicit Writer(const NamesInSource& names) : names_(names) {}

  std::string operator()(const None& /*none*/) const { return "None"; }
  std::string operator()(const TensorArgument& tensor) const { return names_.value(tensor.name); }
  std::string operator()(const std::vector<TensorArgument>& list) const {
    return list_of(list, "Tensor");
  }
  std::string operator()(const OptionalTensor& tensor) const {
    return tensor ? names_.value(tensor->name) : "None";
  }
  // Unless it is stated, a list's type is that of its first element.
  std::string operator()(const std::vector<OptionalTensor>& list) const {
    return "annotate(List[Optional[Tensor]], [" + join(texts_of(list)) + "])";
  }
  std::string operator()(const std::vector<std::vector<TensorArgument>>& lists) const {
    return list_of(lists, "List[Tensor]");
  }

  std::string operator()(std::int64_t number) const { return std::to_string(number); }
  std::string operator()(const std::vector<std::int64_t>& list) const {
    return list_of(list, "int");
  }
  std::string operator()(const std::vector<std::vector<std::int64_t>>& lists) const {
    return list_of(lists, "List[int]");
  }
  std::string operator()(double number) const { return literal(number); }
  std::string operator()(const std::vector<double>& list) const { return list_of(list, "float"); }
  std::string operator()(const std::vector<std::vector<double>>& lists) const {
    return list_of(lists, "List[float]");
  }
  std::string operator()(bool flag) const { return flag ? "True" : "False"; }
  std::string operator()(const std::vector<bool>& list) const {
    std::vector<std::string> texts;
    for (const bool each : list) texts.push_back((*this)(each));
    return list_text(texts, "bool");
  }
  std::string operator()(const std::string& text) const { return string_literal(text); }
  std::string operator()(const std::vector<std::string>& list) const {
    return list_of(list, "str");
  }
  std::string operator()(const ComplexValue& number) const {
    return "complex(" + literal(number.real) + ", " + literal(number.imag) + ")";
  }

  template <typename Number>
  std::string operator()(const SymArgument<Number>& number) const {
    return number.name() ? names_.value(*number.name()) : (*this)(*number.constant());
  }
  std::string operator()(const std::vector<SymIntArgument>& list) const {
    return list_of(list, "int");
  }
  std::string operator()(const std::vector<SymFloatArgument>& list) const {
    return list_of(list, "float");
  }
  std::string operator()(const std::vector<SymBoolArgument>& list) const {
    return list_of(list, "bool");
  }

  std::string operator()(ScalarType type) const { return "torch." + std::string(name_of(type)); }
  std::string operator()(const Device& /*device*/) const { return names_.device(); }
  std::string operator()(MemoryFormat format) const {
    switch (format) {
      case MemoryFormat::contiguous:
        return "torch.contiguous_format";
      case MemoryFormat::channels_last:
        return "torch.channels_last";
      case MemoryFormat::channels_last_3d:
        return "torch.channels_last_3d";
      case MemoryFormat::preserve:
        return "torch.preserve_format";
      case MemoryFormat::unknown:
        break;
    }
    throw Unsupported("asks for a memory format that is not known");
  }
  std::string operator()(Layout layout) const {
    if (layout == Layout::strided) return "torch.strided";
    throw Unsupported("makes a sparse tensor; only dense ones can be trained");
  }

  std::string operator()(const GraphArgument& /*graph*/) const { return refuse("a graph"); }
  std::string operator()(const CustomObjArgument& /*object*/) const {
    return refuse("an object of a class (ScriptObject)");
  }
  std::string operator()(const OperatorArgument& /*target*/) const { return refuse("an operator"); }
  std::string operator()(const ArgumentDict& /*dictionary*/) const {
    return refuse("a dictionary");
  }

 private:
  static std::string refuse(const std::string& what) {
    throw Unsupported("is given " + what + ", which has no TorchScript");
  }

  template <typename Element>
  std::vector<std::string> texts_of(const std::vector<Element>& list) const {
    std::vector<std::string> texts;
    for (const Element& each : list) texts.push_back((*this)(each));
    return texts;
  }

  template <typename Element>
  std::string list_of(const std::vector<Element>& list, const std::string& element_type) const {
    return list_text(texts_of(list), element_type);
  }

  const NamesInSource& names_;
};

}  // namespace

std::string argument_text(const Argument& argument, const NamesInSource& names) {
  return std::visit(Writer(names), argument);
}

}  // namespace decent::pt2
