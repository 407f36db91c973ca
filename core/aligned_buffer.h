// AlignedBuffer<T>: owned, zero-initialised, 64-byte aligned storage of fixed length, so that a vector load
// never straddles a cache line. Move-only; clone() copies, into huge pages. Below kLargeAllocation, `pages`
// has no effect.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "core/platform/memory.h"

namespace fedge {

inline constexpr std::size_t kCacheLine = 64;

template <class T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size, Pages pages = Pages::kHuge) : size_(size) {
    if (size == 0) return;
    const std::size_t bytes = size * sizeof(T);
    data_ = Data(static_cast<T*>(allocate(bytes, pages)), Deleter{bytes});
  }

  AlignedBuffer clone() const {
    AlignedBuffer copy(size_);
    if (size_ > 0) std::memcpy(copy.data(), data(), size_ * sizeof(T));
    return copy;
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::span<T> span() { return {data_.get(), size_}; }
  std::span<const T> span() const { return {data_.get(), size_}; }

 private:
  struct Deleter {
    std::size_t bytes = 0;
    void operator()(T* pointer) const {
      if (bytes >= kLargeAllocation) return release_large(pointer, bytes);
      ::operator delete (pointer, std::align_val_t{kCacheLine});
    }
  };
  using Data = std::unique_ptr<T, Deleter>;

  static void* allocate(std::size_t bytes, Pages pages) {
    if (bytes >= kLargeAllocation) return allocate_large(bytes, pages);
    void* const memory = ::operator new (bytes, std::align_val_t{kCacheLine});
    std::memset(memory, 0, bytes);
    return memory;
  }

  Data data_;
  std::size_t size_ = 0;
};

}  // namespace fedge
