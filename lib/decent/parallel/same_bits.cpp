#include "decent/parallel/same_bits.h"

#include <ATen/Functions.h>

#include <array>
#include <cstring>

#include "decent/core/splitmix64.h"

namespace decent {
namespace {

// Four words at a time: each hash has to wait for the one before it.
using Words = std::array<std::uint64_t, 4>;

void add(Words& hashes, const std::byte* data, std::size_t size) {
  Words words{};
  std::memcpy(words.data(), data, size);
  for (std::size_t i = 0; i < words.size(); ++i) hashes[i] = splitmix64(hashes[i], words[i]);
}

std::uint64_t hash_of(const std::byte* data, std::size_t size) {
  Words hashes{size, 1, 2, 3};
  std::size_t done = 0;
  for (; done + sizeof(Words) <= size; done += sizeof(Words))
    add(hashes, data + done, sizeof(Words));
  if (done < size) add(hashes, data + done, size - done);
  std::uint64_t hash = 0;
  for (const std::uint64_t each : hashes) hash = splitmix64(hash, each);
  return hash;
}

at::Tensor bytes_of(const at::Tensor& tensor) {
  return tensor.detach().contiguous().flatten().view(at::kByte);
}

// On a GPU they come in one copy: each waits for the GPU.
std::vector<at::Tensor> bytes_on_host(std::span<const at::Tensor> tensors) {
  std::vector<at::Tensor> bytes;
  std::vector<at::Tensor> elsewhere;
  std::vector<std::int64_t> sizes;
  for (const at::Tensor& tensor : tensors) {
    bytes.push_back(bytes_of(tensor));
    if (tensor.is_cpu()) continue;
    elsewhere.push_back(bytes.back());
    sizes.push_back(bytes.back().numel());
  }
  if (elsewhere.empty()) return bytes;
  const auto copies = at::cat(elsewhere).to(at::kCPU).split_with_sizes(sizes);
  auto copy = copies.begin();
  for (at::Tensor& each : bytes) {
    if (!each.is_cpu()) each = *copy++;
  }
  return bytes;
}

}  // namespace

at::Tensor bit_hashes(std::span<const at::Tensor> tensors) {
  const at::Tensor hashes = at::zeros({static_cast<std::int64_t>(tensors.size())}, at::kLong);
  auto* next = hashes.mutable_data_ptr<std::int64_t>();
  for (const at::Tensor& bytes : bytes_on_host(tensors)) {
    const auto* data = static_cast<const std::byte*>(bytes.const_data_ptr());
    *next++ = static_cast<std::int64_t>(hash_of(data, static_cast<std::size_t>(bytes.numel())));
  }
  return hashes;
}

std::vector<bool> same_in_all_rows(Communicator& world, const at::Tensor& table) {
  world.all_reduce_sum(table)->wait();
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
