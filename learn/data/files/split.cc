#include "learn/data/files/split.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "learn/data/files/data_files.h"
#include "learn/data/selection.h"
#include "learn/data/validation.h"

namespace fedge::learn {
namespace {

std::size_t rounded(double share, std::size_t count) {
  return static_cast<std::size_t>(std::llround(share * static_cast<double>(count)));
}

// The files of one split, by the beginning of their names. There may be none: a device may only train, or
// only evaluate.
Result<std::vector<std::filesystem::path>> files_of(const std::filesystem::path& path, Split split,
                                                    std::span<const std::string_view> endings) {
  FEDGE_TRY(files, files_at(path, endings));
  const auto begins = [](const std::filesystem::path& file, const char* word) {
    return file.filename().string().starts_with(word);
  };
  if (std::ranges::none_of(files,
                           [&](const auto& file) { return begins(file, "train") || begins(file, "test"); }))
    return Error{ErrorCode::kNotFound,
                 path.string() +
                     " has no file whose name begins with \"train\" or \"test\", which data.split.kind = "
                     "\"file\" needs"};
  const char* word = split == Split::kTrain ? "train" : "test";
  std::erase_if(files, [&](const auto& file) { return !begins(file, word); });
  return files;
}

}  // namespace

std::vector<std::uint32_t> share_of_labels(std::span<const Label> labels, std::size_t classes, double share,
                                           const Rng& rng, std::string_view purpose) {
  std::vector<std::vector<std::uint32_t>> by_class(classes);
  for (std::uint32_t i = 0; i < labels.size(); ++i) by_class[labels[i]].push_back(i);
  std::vector<std::uint32_t> chosen;
  for (std::size_t k = 0; k < classes; ++k) {
    std::vector<std::uint32_t>& samples = by_class[k];
    Rng draw = rng.fork(purpose, k);
    draw.shuffle(std::span(samples));
    samples.resize(rounded(share, samples.size()));
    chosen.insert(chosen.end(), samples.begin(), samples.end());
  }
  std::ranges::sort(chosen);
  return chosen;
}

std::vector<std::uint32_t> test_samples(const SplitSpec& split, std::span<const Label> labels,
                                        std::size_t classes) {
  if (split.kind == SplitKind::kShare)
    return share_of_labels(labels, classes, split.test, Rng(split.seed), "test-samples");
  const std::size_t count = rounded(split.test, labels.size());
  std::vector<std::uint32_t> last;
  for (std::size_t i = labels.size() - count; i < labels.size(); ++i)
    last.push_back(static_cast<std::uint32_t>(i));
  return last;
}

Result<void> check_place(const DataSpec& spec) {
  if (!spec.directory.empty()) return {};
  return Error{ErrorCode::kNotFound, "data.dataset: where the data set \"" + data_name(spec) +
                                         "\" is on this machine is unknown; give its path: --data " +
                                         data_name(spec) + "=PATH"};
}

Result<Dataset> load_split(const DataSpec& spec, Split split, std::span<const std::string_view> endings,
                           const ReadFiles& read) {
  FEDGE_TRY_VOID(check_place(spec));
  const bool by_file = spec.split.kind == SplitKind::kFile;
  FEDGE_TRY(files, by_file ? files_of(spec.directory, split, endings) : files_at(spec.directory, endings));
  FEDGE_TRY(data, read(files));
  if (by_file) return data;
  if (data.size() == 0) return invalid(spec.directory + ": there are no samples");
  const auto test = test_samples(spec.split, data.labels, data.classes);
  if (split == Split::kTest) return select_samples(data, test);
  if (test.empty()) return data;
  return select_samples(data, samples_without(test, data.size()));
}

}  // namespace fedge::learn
