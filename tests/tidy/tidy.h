// tidy: the house rules that a compiler does not check, as a test: which room may include which,
// what decision code may not touch, file sizes, read-mes. Walks a source tree and reports findings.
// Text-based: it knows comments and literals, not C++.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fedge::tidy {

struct Finding {
  std::string file;      // from the root of the tree
  std::size_t line = 0;  // from 1; 0 if it is about the whole file or folder
  std::string message;
};

// "core/rng.h:12: message", without the line if there is none.
std::string to_string(const Finding& finding);

// Every finding in the tree, sorted by file and line. Hidden folders, `build` and symbolic links are passed
// over.
std::vector<Finding> check_tree(const std::filesystem::path& root);

// One file's findings; `path` from the root decides which rules apply.
std::vector<Finding> check_file(const std::filesystem::path& root, const std::string& path,
                                std::string_view text);

// The names of all test cases, and whether documents quote them right: `unit_core: its name`.
class TestNames {
 public:
  void learn(const std::string& path, std::string_view source);
  std::vector<Finding> check(const std::string& path, std::string_view text) const;

 private:
  bool knows(std::string_view folder, std::string_view name) const;
  std::multimap<std::string, std::string> names_;  // to the file
};

// Finds names that two sources of one target declare in unnamed namespaces: a unity build compiles both as
// one unit (cmake/room.cmake).
class UnnamedNames {
 public:
  void learn(const std::string& path, std::string_view source);
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  struct Place {
    std::string file;
    std::string meaning;  // of a function its parameters' types, of an alias what it stands for
  };
  std::map<std::string, std::vector<Place>> places_;  // by target and name
  std::vector<Finding> findings_;
};

// --- parts, exposed for their tests ---

// C++ source with comments (and, if asked, the insides of literals) turned into blanks; the lines stay where
// they are.
std::string without_comments(std::string_view source, bool blank_literals);
std::vector<std::string_view> split_lines(std::string_view text);

}  // namespace fedge::tidy
