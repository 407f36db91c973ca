#include "learn/data/files/own_data.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "learn/data/files/data_files.h"
#include "learn/data/files/split.h"
#include "learn/data/kinds.h"
#include "learn/data/selection.h"
#include "learn/data/validation.h"
#include "learn/tables/csv_reader.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kMaxOwnSamples = UINT32_MAX;

// Samples of one client: those for training, or those for evaluation.
Result<Dataset> choose(const DataSpec& spec, Purpose purpose, Dataset training, const Rng& rng) {
  const auto validation =
      share_of_labels(training.labels, training.classes, spec.validation, rng, "validation");
  if (purpose == Purpose::kEvaluation) return select_samples(training, validation);
  return select_samples(training, samples_without(validation, training.size()));
}

Result<void> check_clients(const DataSpec& spec, std::size_t clients, const std::string& place) {
  if (clients == spec.partition.clients) return {};
  return invalid("data.partition.clients: is " + std::to_string(spec.partition.clients) + ", but " + place +
                 " has the data of " + std::to_string(clients) + " clients; set it to " +
                 std::to_string(clients));
}

// --- clients.csv ---

enum class Role { kTraining, kValidation, kTest };

struct Entry {
  std::uint32_t sample = 0;
  std::string client;
  Role role = Role::kTraining;
};

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

Result<Role> role_of(std::string_view text, const std::string& place) {
  if (text == "train") return Role::kTraining;
  if (text == "validation") return Role::kValidation;
  if (text == "test") return Role::kTest;
  return invalid(place + ": \"" + std::string(text.substr(0, 40)) +
                 "\" is not a split, expected train, validation or test");
}

Result<std::vector<Entry>> read_index(const std::filesystem::path& path, std::size_t samples) {
  FEDGE_TRY(reader, CsvReader::open(path));
  FEDGE_TRY(some, reader.next());
  const auto is = [&](std::size_t i, std::string_view name) { return reader.fields()[i] == name; };
  if (!some || reader.fields().size() != 3 || !is(0, "sample_id") || !is(1, "client_id") || !is(2, "split"))
    return invalid(path.string() + ": the first line must be \"sample_id,client_id,split\"");
  std::vector<Entry> entries;
  std::vector<bool> seen(samples, false);
  while (true) {
    FEDGE_TRY(more, reader.next());
    if (!more) return entries;
    const auto fields = reader.fields();
    if (fields.size() != 3)
      return invalid(reader.place() + ": the row has " + std::to_string(fields.size()) +
                     " fields, expected 3");
    const auto sample = whole_number<std::uint32_t>(fields[0]);
    if (!sample || *sample >= samples)
      return invalid(reader.place() + ": there is no sample \"" + std::string(fields[0].substr(0, 40)) +
                     "\"; the data has the samples 0 to " + std::to_string(samples - 1));
    if (seen[*sample])
      return invalid(reader.place() + ": sample " + std::to_string(*sample) + " is listed twice");
    seen[*sample] = true;
    FEDGE_TRY(role, role_of(fields[2], reader.place()));
    entries.push_back({*sample, std::string(fields[1]), role});
  }
}

// The numbers of the clients by their ids.
std::map<std::string, std::size_t> numbers_of(const std::vector<Entry>& entries) {
  std::map<std::string, std::size_t> numbers;
  for (const Entry& entry : entries) numbers.emplace(entry.client, 0);
  std::vector<std::pair<std::uint64_t, std::string>> order;
  bool all_numbers = true;
  for (const auto& [id, number] : numbers) {
    const auto value = whole_number<std::uint64_t>(id);
    all_numbers = all_numbers && value.has_value();
    order.emplace_back(value.value_or(0), id);
  }
  if (all_numbers) std::ranges::sort(order);
  for (std::size_t i = 0; i < order.size(); ++i) numbers[order[i].second] = i;
  return numbers;
}

Result<OwnedSamples> load_indexed(const DataSpec& spec, Purpose purpose) {
  FEDGE_TRY(source, source_of(spec));
  DataSpec everything = spec;
  everything.split = {.kind = SplitKind::kShare, .test = 0};
  FEDGE_TRY(data, source->load(everything, Split::kTrain));
  const auto path = std::filesystem::path(spec.directory) / kClientIndex;
  if (data.shape.tokens)
    return Error{ErrorCode::kUnsupported,
                 path.string() + ": the samples of a text cannot be listed; give each client a directory"};
  FEDGE_TRY(entries, read_index(path, std::min(data.size(), kMaxOwnSamples)));
  const auto numbers = numbers_of(entries);
  FEDGE_TRY_VOID(check_clients(spec, numbers.size(), path.string()));
  const auto is_validation = [](const Entry& entry) { return entry.role == Role::kValidation; };
  const Role held_out = std::ranges::any_of(entries, is_validation) ? Role::kValidation : Role::kTest;
  const Role wanted = purpose == Purpose::kTraining ? Role::kTraining : held_out;
  std::vector<std::vector<std::uint32_t>> samples(numbers.size());
  for (const Entry& entry : entries)
    if (entry.role == wanted) samples[numbers.at(entry.client)].push_back(entry.sample);
  std::vector<std::uint32_t> all;
  std::vector<std::size_t> starts = {0};
  for (std::vector<std::uint32_t>& own : samples) {
    std::ranges::sort(own);
    all.insert(all.end(), own.begin(), own.end());
    starts.push_back(all.size());
  }
  return OwnedSamples{std::move(data), Partition(std::move(all), std::move(starts))};
}

bool has_index(const DataSpec& spec) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::path(spec.directory) / kClientIndex, ignored);
}

}  // namespace

Result<Dataset> load_own(const DataSpec& spec, Purpose purpose, std::size_t client, const Rng& rng) {
  FEDGE_TRY(source, source_of(spec));
  if (purpose == Purpose::kEvaluation && spec.validation == 0) {
    auto test = source->load(spec, Split::kTest);
    if (test || !is_text(spec) || test.error().code != ErrorCode::kInvalid) return test;
    // A text may be too short to hold out a part of it.
    FEDGE_TRY(whole, source->load(spec, Split::kTrain));
    return select_samples(whole, {});
  }
  FEDGE_TRY(training, source->load(spec, Split::kTrain));
  if (spec.validation == 0) return training;
  return choose(spec, purpose, std::move(training),
                partition_stream(spec.partition, rng).fork("own", client));
}

Result<std::vector<std::filesystem::path>> client_paths(const DataSpec& spec) {
  if (spec.directory.empty())
    return Error{ErrorCode::kNotFound,
                 "data.dataset: where the clients' data \"" + data_name(spec) +
                     "\" is on this machine is unknown; give the directory that has a file or directory for "
                     "each client: --data " +
                     data_name(spec) + "=DIR"};
  if (has_index(spec))
    return Error{ErrorCode::kUnsupported, spec.directory + ": the clients of " + kClientIndex +
                                              " have no files of their own, which processes need; use "
                                              "--mode abstract"};
  FEDGE_TRY(paths, entries_of(spec.directory));
  FEDGE_TRY_VOID(check_clients(spec, paths.size(), spec.directory));
  return paths;
}

Result<OwnedSamples> load_all_own(const DataSpec& spec, Purpose purpose, const Rng& rng) {
  if (!spec.directory.empty() && has_index(spec)) {
    if (spec.validation > 0)
      return invalid("data.validation: " + std::string(kClientIndex) +
                     " says which samples are for validation; remove the key");
    return load_indexed(spec, purpose);
  }
  FEDGE_TRY(paths, client_paths(spec));
  std::vector<Dataset> parts;
  std::vector<std::size_t> starts = {0};
  for (std::size_t client = 0; client < paths.size(); ++client) {
    DataSpec one = spec;
    one.directory = paths[client].string();
    FEDGE_TRY(own, load_own(one, purpose, client, rng));
    starts.push_back(starts.back() + own.size());
    parts.push_back(std::move(own));
  }
  FEDGE_TRY(data, join_samples(std::move(parts)));
  std::vector<std::uint32_t> samples(data.size());
  std::iota(samples.begin(), samples.end(), 0U);
  return OwnedSamples{std::move(data), Partition(std::move(samples), std::move(starts))};
}

}  // namespace fedge::learn
