// TextDecoder: a language model that reads a text token by token and remembers the keys and values of what it
// has read, so that another token costs one row of each layer instead of the whole text.
#pragma once

#include <cstddef>
#include <span>

#include "learn/token.h"

namespace fedge::learn {

class TextDecoder {
 public:
  virtual ~TextDecoder() = default;

  std::size_t length() const { return length_; }      // tokens read
  std::size_t capacity() const { return capacity_; }  // at most this many can be
  // Reads tokens after those before, and writes the scores of the token that follows them. `tokens` is not
  // empty; they must fit.
  virtual void read(std::span<const Token> tokens, std::span<float> scores) = 0;

 protected:
  explicit TextDecoder(std::size_t capacity) : capacity_(capacity) {}
  std::size_t length_ = 0;

 private:
  std::size_t capacity_;
};

}  // namespace fedge::learn
