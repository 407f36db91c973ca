#include <algorithm>
#include <cctype>
#include <optional>

#include "tests/tidy/rules.h"
#include "tests/tidy/standard_headers.h"
#include "tests/tidy/tidy.h"

namespace fedge::tidy {
namespace {

namespace fs = std::filesystem;

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}
bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string_view first_folder(std::string_view path) {
  const std::size_t slash = path.find('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

const Room* find_room(std::string_view name) {
  for (const Room& room : rooms())
    if (room.name == name) return &room;
  return nullptr;
}

// Returns whether this code line, without comments and literals, uses a word of rules.h's table.
bool uses(std::string_view line, std::string_view word) {
  const bool call = ends_with(word, "()");
  if (call) word.remove_suffix(2);
  for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    std::size_t after = at + word.size();
    if (after < line.size() && is_word(line[after])) continue;
    std::string_view before = line.substr(0, at);
    if (!before.empty() && is_word(before.back())) continue;
    if (!call) return true;
    while (after < line.size() && line[after] == ' ') ++after;
    if (after == line.size() || line[after] != '(') continue;
    if (ends_with(before, ".") || ends_with(before, "->")) continue;  // a member of another type
    if (ends_with(before, "std::")) return true;
    if (ends_with(before, "::") && before.size() > 2 && is_word(before[before.size() - 3])) continue;
    return true;
  }
  return false;
}

struct Include {
  std::string_view path;
  bool angled = false;
};

std::optional<Include> parse_include(std::string_view line) {
  const auto skip_blanks = [&] {
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  };
  skip_blanks();
  if (!starts_with(line, "#")) return std::nullopt;
  line.remove_prefix(1);
  skip_blanks();
  if (!starts_with(line, "include")) return std::nullopt;
  line.remove_prefix(7);
  skip_blanks();
  if (line.empty() || (line.front() != '<' && line.front() != '"')) return std::nullopt;
  const bool angled = line.front() == '<';
  const std::size_t end = line.find(angled ? '>' : '"', 1);
  if (end == std::string_view::npos) return std::nullopt;
  return Include{line.substr(1, end - 1), angled};
}

class FileCheck {
 public:
  FileCheck(const fs::path& root, const std::string& path, std::string_view text)
      : root_(root),
        path_(path),
        text_(text),
        lines_(split_lines(text)),
        folder_(first_folder(path)),
        room_(find_room(folder_)) {}

  std::vector<Finding> run() {
    const bool header = ends_with(path_, ".h");
    const bool source = ends_with(path_, ".cc");
    check_text();
    if (header || source) {
      check_size(header);
      check_code(header);
    }
    if (header) check_header();
    if (is_room_readme()) at_most(Limits::kReadmeLines, "a room's read-me");
    return std::move(findings_);
  }

 private:
  void report(std::size_t line, std::string message) {
    findings_.push_back({path_, line, std::move(message)});
  }

  void at_most(std::size_t limit, const std::string& what) {
    if (lines_.size() > limit)
      report(0, std::to_string(lines_.size()) + " lines; " + what + " has at most " + std::to_string(limit));
  }

  bool is_room_readme() const {
    return path_ == std::string(folder_) + "/README.md" &&
           (room_ != nullptr ||
            std::find(kOtherFolders.begin(), kOtherFolders.end(), folder_) != kOtherFolders.end());
  }

  void check_text() {
    // Assembled from two parts so that this file does not report itself.
    const std::string markers[] = {std::string("TO") + "DO", std::string("FIX") + "ME",
                                   std::string("XX") + "X"};
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::string_view line = lines_[i];
      if (line.find('\t') != std::string_view::npos) report(i + 1, "a tab; indent with spaces");
      if (!line.empty() && (line.back() == ' ' || line.back() == '\r'))
        report(i + 1, "blanks at the end of the line");
      for (const std::string& marker : markers)
        if (uses(line, marker)) report(i + 1, marker + ": finish it or leave it out");
    }
    if (!text_.empty() && text_.back() != '\n') report(lines_.size(), "no newline at the end of the file");
  }

  void check_size(bool header) {
    if (folder_ == "tests")
      at_most(Limits::kTestLines, "a test");
    else if (header)
      at_most(Limits::kHeaderLines, "a header");
    else
      at_most(Limits::kSourceLines, "a source file");
  }

  void check_header() {
    if (lines_.empty() || !starts_with(lines_.front(), "//"))
      report(1, "a header opens with a comment that says what it is");
    if (std::find(lines_.begin(), lines_.end(), "#pragma once") == lines_.end())
      report(1, "#pragma once is missing");
  }

  void check_code(bool header) {
    const std::string with_literals = without_comments(text_, false);
    const std::string bare = without_comments(text_, true);
    const auto code = split_lines(with_literals);
    const auto words = split_lines(bare);
    for (std::size_t i = 0; i < code.size(); ++i)
      if (const auto include = parse_include(code[i])) check_include(*include, i + 1, header);
    if (room_ == nullptr || room_->shell || starts_with(path_, "core/platform/")) return;
    for (std::size_t i = 0; i < words.size(); ++i)
      for (const std::string_view word : kShellWords)
        if (uses(words[i], word))
          report(i + 1, std::string(word) +
                            " belongs in a shell (server, client, sim, lab, core/platform); take the " +
                            "time, the random stream or the Parallel as an argument");
  }

  void check_include(const Include& include, std::size_t line, bool header) {
    const std::string_view target = first_folder(include.path);
    const Room* room = find_room(target);
    if (!include.angled && !fs::exists(root_ / include.path) && !ends_with(include.path, ".pb.h"))
      report(line, "include " + quoted(include.path) + " is not a path from the root of the repository");
    if (room_ == nullptr) return;
    const auto& allowed = room_->may_include;
    if (room != nullptr && room != room_ &&
        std::find(allowed.begin(), allowed.end(), target) == allowed.end())
      report(line, std::string(folder_) + " may not include " + quoted(include.path) + " (room order)");
    if (std::find(kOtherFolders.begin(), kOtherFolders.end(), target) != kOtherFolders.end())
      report(line, "a room may not include " + quoted(include.path));
    if (room_->decisions)
      for (const std::string_view prefix : kShellHeaders)
        if (starts_with(include.path, prefix))
          report(line,
                 std::string(folder_) + " decides and computes; it may not include " + quoted(include.path));
    if (include.angled && !room_->shell && !starts_with(path_, "core/platform/") &&
        std::find(kThreadHeaders.begin(), kThreadHeaders.end(), include.path) != kThreadHeaders.end())
      report(line, "<" + std::string(include.path) + "> belongs in a shell; take a Parallel as an argument");
    const bool own = room != nullptr;
    const bool standard =
        include.angled && std::binary_search(kStandardHeaders.begin(), kStandardHeaders.end(), include.path);
    if (header && folder_ != "apps" && path_.find("/detail/") == std::string::npos && !own && !standard)
      report(line, "a public header may not include " + quoted(include.path) +
                       "; move it to a .cc or to a header in a folder detail/");
  }

  const fs::path& root_;
  const std::string& path_;
  std::string_view text_;
  std::vector<std::string_view> lines_;
  std::string_view folder_;
  const Room* room_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check_file(const fs::path& root, const std::string& path, std::string_view text) {
  return FileCheck(root, path, text).run();
}

}  // namespace fedge::tidy
