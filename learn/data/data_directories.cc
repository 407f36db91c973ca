#include "learn/data/data_directories.h"

#include "learn/data/kinds.h"

namespace fedge::learn {

Result<DataDirectories> read_data_directories(std::span<const std::string> texts) {
  DataDirectories directories;
  for (const std::string& text : texts) {
    std::string name = text.substr(0, text.find('='));
    std::string path = text;
    if (name != text && find_dataset_kind(name) != nullptr)
      path.erase(0, name.size() + 1);
    else
      name.clear();
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) return invalid(path + " is not a directory");
    if (!directories.emplace(name, path).second)
      return invalid(path + " is a second directory " + (name.empty() ? "for all data sets" : "for " + name) +
                     "; give only one");
  }
  return directories;
}

Result<void> choose_directory(const DataDirectories& directories, DataSpec& data) {
  for (const std::string& name : {data.dataset, std::string()}) {
    const auto found = directories.find(name);
    if (found == directories.end()) continue;
    data.directory = found->second.string();
    return {};
  }
  const DatasetKind* kind = find_dataset_kind(data.dataset);
  if (kind != nullptr && (kind->own || kind->traits.text)) data.directory.clear();
  if (data.dataset != "text") return {};
  return invalid(
      "the run trains on text files of this device, but the client has no directory for them; start it with "
      "--data-directory text=DIR");
}

}  // namespace fedge::learn
