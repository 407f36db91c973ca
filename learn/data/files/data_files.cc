#include "learn/data/files/data_files.h"

#include <algorithm>
#include <string>

#include "core/platform/files.h"

namespace fedge::learn {

Result<std::vector<std::filesystem::path>> entries_of(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  std::vector<std::filesystem::path> entries;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    if (!entry->path().filename().string().starts_with('.')) entries.push_back(entry->path());
  if (error) return system_error("cannot read directory", directory, error.value());
  std::ranges::sort(entries);
  return entries;
}

Result<std::vector<std::filesystem::path>> files_at(const std::filesystem::path& path,
                                                    std::span<const std::string_view> endings) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return Error{ErrorCode::kNotFound, path.string() + " does not exist"};
  if (!std::filesystem::is_directory(status)) return std::vector<std::filesystem::path>{path};
  FEDGE_TRY(files, entries_of(path));
  std::erase_if(files, [&](const std::filesystem::path& file) {
    const std::string name = file.filename().string();
    return name == kClientIndex || std::filesystem::is_directory(file, error) ||
           std::ranges::none_of(endings, [&](std::string_view ending) { return name.ends_with(ending); });
  });
  if (!files.empty()) return files;
  std::string wanted;
  for (const std::string_view ending : endings)
    wanted += (wanted.empty() ? "*" : ", *") + std::string(ending);
  return Error{ErrorCode::kNotFound, "the directory " + path.string() + " has no file " + wanted};
}

}  // namespace fedge::learn
