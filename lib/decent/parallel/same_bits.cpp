#include "decent/parallel/same_bits.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "decent/core/splitmix64.h"

namespace decent {
namespace {

// Hashes four words side by side, because each step of a hash waits for the step before it.
using Words = std::array<std::uint64_t, 4>;

class Hash {
 public:
  explicit Hash(std::size_t size) : hashes_{size, 1, 2, 3} {}

  // The next bytes: a multiple of the words' size, except at the end.
  void add(const std::byte* data, std::size_t size) {
    std::size_t done = 0;
    for (; done + sizeof(Words) <= size; done += sizeof(Words))
      add_words(data + done, sizeof(Words));
    if (done < size) add_words(data + done, size - done);
  }

  std::int64_t value() const {
    std::uint64_t hash = 0;
    for (const std::uint64_t each : hashes_) hash = splitmix64(hash, each);
    return static_cast<std::int64_t>(hash);
  }

 private:
  void add_words(const std::byte* data, std::size_t size) {
    Words words{};
    std::memcpy(words.data(), data, size);
    for (std::size_t i = 0; i < words.size(); ++i) hashes_[i] = splitmix64(hashes_[i], words[i]);
  }

  Words hashes_;
};

at::Tensor bytes_of(const at::Tensor& tensor) {
  return tensor.detach().contiguous().flatten().view(at::kByte);
}

std::int64_t hash_of(const at::Tensor& bytes) {
  const auto size = static_cast<std::size_t>(bytes.numel());
  Hash hash(size);
  hash.add(static_cast<const std::byte*>(bytes.const_data_ptr()), size);
  return hash.value();
}

// The hash of bytes that are copied into `passage` piece by piece.
std::int64_t hash_of(const at::Tensor& bytes, const at::Tensor& passage) {
  Hash hash(static_cast<std::size_t>(bytes.numel()));
  const std::int64_t most = passage.numel() / sizeof(Words) * sizeof(Words);
  for (std::int64_t begin = 0; begin < bytes.numel(); begin += most) {
    const std::int64_t size = std::min(most, bytes.numel() - begin);
    passage.narrow(0, 0, size).copy_(bytes.narrow(0, begin, size));
    hash.add(static_cast<const std::byte*>(passage.const_data_ptr()),
             static_cast<std::size_t>(size));
  }
  return hash.value();
}

}  // namespace

std::vector<std::int64_t> hashes_through(const at::Tensor& passage,
                                         std::span<const at::Tensor> tensors) {
  std::vector<std::int64_t> hashes;
  std::vector<at::Tensor> together;  // small ones: each separate copy would wait for the GPU
  std::int64_t sum = 0;
  const auto copy_together = [&] {
    if (together.empty()) return;
    const at::Tensor bytes = passage.narrow(0, 0, sum);
    bytes.copy_(at::cat(together));
    std::int64_t begin = 0;
    for (const at::Tensor& each : together) {
      hashes.push_back(hash_of(bytes.narrow(0, begin, each.numel())));
      begin += each.numel();
    }
    together.clear();
    sum = 0;
  };
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor bytes = bytes_of(tensor);
    if (sum + bytes.numel() > passage.numel()) copy_together();
    if (bytes.numel() > passage.numel()) {
      hashes.push_back(hash_of(bytes, passage));
    } else {
      together.push_back(bytes);
      sum += bytes.numel();
    }
  }
  copy_together();
  return hashes;
}

at::Tensor bit_hashes(std::span<const at::Tensor> tensors) {
  constexpr std::int64_t kPassageBytes = std::int64_t{16} << 20;
  const at::Tensor hashes = at::zeros({static_cast<std::int64_t>(tensors.size())}, at::kLong);
  auto* next = hashes.mutable_data_ptr<std::int64_t>();
  std::vector<at::Tensor> elsewhere;
  std::vector<std::int64_t*> places;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.is_cpu()) {
      *next = hash_of(bytes_of(tensor));
    } else {
      elsewhere.push_back(tensor);
      places.push_back(next);
    }
    ++next;
  }
  if (elsewhere.empty()) return hashes;
  const at::Tensor passage =
      at::empty({kPassageBytes}, at::TensorOptions(at::kByte).pinned_memory(true));
  const std::vector<std::int64_t> found = hashes_through(passage, elsewhere);
  for (std::size_t i = 0; i < found.size(); ++i) *places[i] = found[i];
  return hashes;
}

std::vector<bool> same_in_all_rows(Communicator& communicator, const at::Tensor& table) {
  communicator.all_reduce_sum(table)->wait();
  std::vector<bool> same;
  const auto hashes = table.accessor<std::int64_t, 2>();
  for (std::int64_t column = 0; column < table.size(1); ++column) {
    bool all = true;
    for (std::int64_t row = 1; row < table.size(0); ++row)
      all = all && hashes[row][column] == hashes[0][column];
    same.push_back(all);
  }
  return same;
}

}  // namespace decent
