// A tokenizer.bin (llama2.c) that is too long for a run's description: all bytes, and words that never occur.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace fedge::test {

inline constexpr std::size_t kLongTokenizerTokens = 3 + 256 + 4000;

inline void write_long_tokenizer(const std::filesystem::path& path, char last = 'z') {
  std::string bytes;
  const auto add = [&](const auto& value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes.append(raw, sizeof value);
  };
  float score = 0;
  const auto add_token = [&](const std::string& token) {
    add(score--);
    add(static_cast<std::int32_t>(token.size()));
    bytes += token;
  };
  add(std::int32_t{30});
  for (const char* control : {"<unk>", "<s>", "</s>"}) add_token(control);
  const char* digits = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte)
    add_token(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">");
  for (int word = 0; word < 4000; ++word)
    add_token(" word-number-" + std::to_string(100'000 + word) + (word == 3999 ? last : 'x'));
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace fedge::test
