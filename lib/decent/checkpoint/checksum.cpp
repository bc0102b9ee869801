#include "decent/checkpoint/checksum.h"

#include <xxhash.h>

#include <cstdint>
#include <new>

#include "decent/core/text.h"

namespace decent {
namespace {

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

}  // namespace

struct Checksum::State {
  // XXH3's state needs an alignment that only its own allocation gives.
  std::unique_ptr<XXH3_state_t, FreeState> xxh{XXH3_createState()};
};

Checksum::Checksum() : state_(std::make_unique<State>()) {
  if (!state_->xxh) throw std::bad_alloc();
  XXH3_128bits_reset(state_->xxh.get());
}

Checksum::~Checksum() = default;

void Checksum::add(std::string_view bytes) {
  XXH3_128bits_update(state_->xxh.get(), bytes.data(), bytes.size());
}

std::string Checksum::hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_->xxh.get()));
  return hex_text(canonical.digest);
}

std::string checksum_of(std::string_view bytes) {
  Checksum checksum;
  checksum.add(bytes);
  return checksum.hex();
}

}  // namespace decent
