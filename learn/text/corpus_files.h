// Helpers of the corpus loaders (corpus.cc, wordnet.cc): they find and read a corpus' files, with errors that
// tell the user what to do, and split text into training and held-out parts. Reads files; stateless and
// thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "learn/text/corpus.h"

namespace fedge::learn {

inline constexpr std::size_t kMaxCorpusFileBytes = std::size_t{1} << 30;
inline constexpr std::size_t kMaxCorpusBytes = std::size_t{1} << 32;
inline constexpr std::size_t kMaxGroups = 100'000;

struct CorpusPlace {
  std::filesystem::path directory;
  std::string remedy;  // what to do if a file is absent: "install it with ..."
};

// Returns kNotFound: "PATH does not exist: REMEDY".
Error not_there(const CorpusPlace& place, const std::filesystem::path& path);
Error corrupt_line(const std::filesystem::path& path, std::size_t line, const std::string& what);

// The sorted names of the files for which `wanted` is true. kNotFound if there is none; kResource for more
// than kMaxGroups files or kMaxCorpusBytes bytes.
Result<std::vector<std::string>> list_files(const CorpusPlace& place, bool (*wanted)(std::string_view name));

// Reads a file as UTF-8 without NUL bytes. kCorrupt if it is empty or not such a text.
Result<std::string> read_text(const CorpusPlace& place, const std::string& name);

// Holds out every n-th block of block_bytes bytes; blocks are counted across all texts given. A cut within a
// character is moved to the character's beginning.
class BlockSplit {
 public:
  BlockSplit(std::size_t block_bytes, std::size_t every) : block_bytes_(block_bytes), every_(every) {}
  void add(std::string_view text, TextGroup& group);

 private:
  std::size_t block_bytes_;
  std::size_t every_;
  std::size_t position_ = 0;  // bytes added so far
};

// Holds out every tenth of a group's entries.
class EntrySplit {
 public:
  void add(std::string_view entry, TextGroup& group);

 private:
  std::size_t entries_ = 0;
};

}  // namespace fedge::learn
