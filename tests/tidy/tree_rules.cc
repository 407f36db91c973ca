#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <tuple>

#include "tests/tidy/rules.h"
#include "tests/tidy/tidy.h"

namespace fedge::tidy {
namespace {

namespace fs = std::filesystem;

// Files that people write by hand. The walk ignores all others (fixtures, corpora, pictures).
constexpr std::array<std::string_view, 12> kExtensions = {
    ".h", ".cc", ".py", ".sh", ".md", ".toml", ".txt", ".cmake", ".proto", ".json", ".html", ".js"};

bool is_written_by_hand(const fs::path& path) {
  return std::find(kExtensions.begin(), kExtensions.end(), path.extension().string()) != kExtensions.end();
}

bool is_passed_over(const fs::directory_entry& entry, bool at_root) {
  const std::string name = entry.path().filename().string();
  return entry.is_symlink() || name.starts_with('.') || name == "__pycache__" || (at_root && name == "build");
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the sorted paths, relative to the root, of every file to check.
std::vector<std::string> list_files(const fs::path& root) {
  std::vector<std::string> files;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
    if (is_passed_over(*it, it.depth() == 0))
      it.disable_recursion_pending();
    else if (it->is_regular_file() && is_written_by_hand(it->path()))
      files.push_back(it->path().lexically_relative(root).generic_string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void check_readmes(const fs::path& root, std::vector<Finding>& findings) {
  const auto check = [&](std::string_view folder) {
    if (fs::is_directory(root / folder) && !fs::exists(root / folder / "README.md"))
      findings.push_back({std::string(folder), 0, "the room has no README.md"});
  };
  for (const Room& room : rooms()) check(room.name);
  for (const std::string_view folder : kOtherFolders) check(folder);
}

void check_crowds(const std::vector<std::string>& files, std::vector<Finding>& findings) {
  std::map<std::string, std::size_t> counts;
  for (const std::string& file : files)
    if (file.find('/') != std::string::npos) ++counts[file.substr(0, file.rfind('/'))];
  for (const auto& [folder, count] : counts)
    if (count > Limits::kFilesInFolder)
      findings.push_back({folder, 0,
                          std::to_string(count) + " files in one folder; at most " +
                              std::to_string(Limits::kFilesInFolder) + ", then folders inside"});
}

}  // namespace

std::string to_string(const Finding& finding) {
  return finding.file + (finding.line > 0 ? ":" + std::to_string(finding.line) : "") + ": " + finding.message;
}

std::vector<Finding> check_tree(const fs::path& root) {
  const std::vector<std::string> files = list_files(root);
  std::vector<Finding> findings;
  check_readmes(root, findings);
  check_crowds(files, findings);
  TestNames names;
  for (const std::string& file : files)
    if (file.starts_with("tests/") && file.ends_with("_test.cc")) names.learn(file, read_text(root / file));
  UnnamedNames unnamed;
  ClassSizes sizes;
  for (const std::string& file : files) {
    const std::string text = read_text(root / file);
    std::vector<Finding> more = check_file(root, file, text);
    std::move(more.begin(), more.end(), std::back_inserter(findings));
    unnamed.learn(file, text);
    sizes.learn(file, text);
    if (!file.ends_with(".md")) continue;
    more = names.check(file, text);
    std::move(more.begin(), more.end(), std::back_inserter(findings));
  }
  findings.insert(findings.end(), unnamed.findings().begin(), unnamed.findings().end());
  for (const Finding& finding : sizes.findings()) findings.push_back(finding);
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return std::tie(a.file, a.line) < std::tie(b.file, b.line);
  });
  return findings;
}

}  // namespace fedge::tidy
