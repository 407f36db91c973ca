#include "learn/data/data_directories.h"

#include <algorithm>

#include "learn/data/data_section.h"
#include "learn/data/kinds.h"

namespace fedge::learn {

Result<DataDirectories> read_data_directories(std::span<const std::string> texts) {
  DataDirectories directories;
  for (const std::string& text : texts) {
    std::string name = text.substr(0, text.find('='));
    std::string path = text;
    if (name != text && is_data_name(name))
      path.erase(0, name.size() + 1);
    else
      name.clear();
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    if (!std::filesystem::exists(status)) return invalid(path + " does not exist");
    if (name.empty() && !std::filesystem::is_directory(status))
      return invalid(path + " is not a directory; a file needs the name of its data: NAME=" + path);
    if (!directories.emplace(name, path).second)
      return invalid(path + " is a second path " + (name.empty() ? "for all data sets" : "for " + name) +
                     "; give only one");
  }
  return directories;
}

Result<void> choose_directory(const DataDirectories& directories, DataSpec& data) {
  const DatasetKind* kind = find_dataset_kind(data.dataset);
  const bool only_here = is_own(data) || in_own_files(data);
  for (const std::string& name : {data_name(data), std::string()}) {
    const auto found = directories.find(name);
    // A directory for all data sets is not permission to use what is in it under any name.
    if (found == directories.end() || (only_here && name.empty())) continue;
    data.directory = found->second.string();
    return {};
  }
  if (only_here || (kind != nullptr && (kind->own || kind->traits.text))) data.directory.clear();
  if (only_here)
    return Error{ErrorCode::kNotFound, "the run trains on data that this device knows as \"" +
                                           data_name(data) +
                                           "\", but no path was given for it; start the client with --data " +
                                           data_name(data) + "=PATH"};
  if (data.dataset != "text") return {};
  return invalid(
      "the run trains on text files of this device, but the client has no directory for them; start it with "
      "--data text=DIR");
}

Result<void> choose_directory_here(const DataDirectories& directories, DataSpec& data) {
  for (const auto& [name, path] : directories) {
    if (!name.empty() && name != data_name(data))
      return invalid(name + "=" + path.string() + ": the run has no data of this name; it uses " +
                     data_name(data) + "=PATH");
    data.directory = path.string();
  }
  return {};
}

}  // namespace fedge::learn
