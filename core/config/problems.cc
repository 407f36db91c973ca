#include "core/config/problems.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <string_view>
#include <system_error>

namespace fedge::config {
namespace {

// True if `path` is `table` or lies in it.
bool within(std::string_view path, std::string_view table) {
  return path.starts_with(table) && (path.size() == table.size() || path[table.size()] == '.');
}

std::string table_of(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string::npos ? std::string() : key.substr(0, dot);
}

// The line number at the end of a place, as in "run.toml:12" or "run 2, line 12". A whole file gets 0 and
// sorts first; --set gets the maximum and sorts last. A file's name may contain either mark.
std::size_t line_of(std::string_view where) {
  if (where.starts_with("--set ")) return std::numeric_limits<std::size_t>::max();
  std::size_t begin = 0;
  for (const std::string_view mark : {":", ", line "})
    if (const std::size_t at = where.rfind(mark); at != std::string_view::npos)
      begin = std::max(begin, at + mark.size());
  std::size_t line = 0;
  const char* end = where.data() + where.size();
  const auto parsed = std::from_chars(where.data() + begin, end, line);
  return begin > 0 && parsed.ec == std::errc() && parsed.ptr == end ? line : 0;
}

// Names a key of --set only once.
std::string sentence(const Problem& problem) {
  const std::string twice = problem.key + ": ";
  const bool named = problem.where == "--set " + problem.key && problem.message.starts_with(twice);
  return problem.where + ": " + (named ? problem.message.substr(twice.size()) : problem.message);
}

}  // namespace

void Problems::add(Problem problem) {
  if (!full()) problems_.push_back(std::move(problem));
}

void Problems::add_hint(const std::string& key, const std::string& hint) {
  for (Problem& problem : problems_)
    if (problem.key == key) problem.message += hint;
}

void Problems::adopt(Problems&& other) {
  for (Problem& problem : other.problems_) add(std::move(problem));
  std::ranges::move(other.dependencies_, std::back_inserter(dependencies_));
  other.problems_.clear();
  other.dependencies_.clear();
}

std::vector<std::string> Problems::governing(const std::string& key) const {
  const std::string table = table_of(key);
  std::vector<std::string> keys;
  if (!table.empty()) keys.push_back(table + ".kind");
  for (const auto& [dependent, on] : dependencies_)
    if (within(key, dependent)) keys.push_back(on);
  return keys;
}

bool Problems::is_wrong(const std::string& path, const Problem& apart_from) const {
  return std::ranges::any_of(problems_, [&](const Problem& problem) {
    if (&problem == &apart_from || problem.kind == Problem::Kind::kJudgement) return false;
    const auto touches = [&](const std::string& key) { return within(key, path) || within(path, key); };
    if (!problem.suspects.empty()) return std::ranges::any_of(problem.suspects, touches);
    return problem.kind != Problem::Kind::kInapplicable && touches(problem.key);
  });
}

bool Problems::follows(const Problem& problem) const {
  const auto wrong = [&](const std::string& path) { return is_wrong(path, problem); };
  for (const std::string& path : problem.rests_on) {
    if (wrong(path)) return true;
    for (const auto& [dependent, on] : dependencies_)
      if ((within(path, dependent) || within(dependent, path)) && wrong(on)) return true;
  }
  // A key that is close to a known one is a spelling error with any kind.
  return problem.kind == Problem::Kind::kInapplicable && problem.suspects.empty() &&
         std::ranges::any_of(governing(problem.key), wrong);
}

std::vector<Problem> Problems::reported() const {
  std::vector<Problem> out;
  for (const Problem& problem : problems_) {
    // Reports one error for a value, and all errors for a table.
    const bool again = std::ranges::any_of(out, [&](const Problem& earlier) {
      return earlier.key == problem.key &&
             (problem.kind != Problem::Kind::kJudgement || earlier.kind == Problem::Kind::kWrong ||
              earlier.message == problem.message);
    });
    if (again || follows(problem)) continue;
    out.push_back(problem);
    if (problem.kind == Problem::Kind::kInapplicable) out.back().governed_by = governing(problem.key);
  }
  std::ranges::stable_sort(out, {}, [](const Problem& problem) { return line_of(problem.where); });
  return out;
}

Result<void> to_result(const std::vector<Problem>& problems, const std::string& file) {
  if (problems.empty()) return {};
  if (problems.size() == 1) return invalid(sentence(problems.front()));
  std::string text;
  for (std::size_t i = 0; i < std::min(problems.size(), kMaxShownProblems); ++i)
    text += sentence(problems[i]) + "\n";
  const bool cut = problems.size() > kMaxShownProblems;
  return invalid(text + (problems.size() == kMaxProblems ? "at least " : "") +
                 std::to_string(problems.size()) + " errors in " + file +
                 (cut ? "; the first " + std::to_string(kMaxShownProblems) + " are shown" : ""));
}

}  // namespace fedge::config
