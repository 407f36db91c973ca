#include "learn/data/data_section.h"

#include <string>
#include <vector>

#include "learn/data/kinds.h"
#include "learn/data/label.h"

namespace fedge::learn {
namespace {

constexpr std::int64_t kMaxClients = 10'000'000;
constexpr std::int64_t kMaxSamples = 1'000'000'000;
constexpr std::int64_t kMaxContext = 4096;
constexpr std::size_t kMaxName = 64;
constexpr const char* kNameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-";
constexpr const char* kSeedDoc = "Seed of the draws that decide who has which samples. If not set: run.seed.";
const std::vector<std::string> kPartitionNames = {"iid",    "dirichlet",   "pathological", "shards", "linear",
                                                  "square", "exponential", "natural",      "own"};
const std::vector<std::string> kTokenizerNames = {"bytes", "ascii", "bpe", "vocabulary"};
const std::vector<std::string> kNormaliseNames = {"constants", "federated"};
const std::vector<std::string> kUnitNames = {"window", "line", "paragraph"};
const std::vector<std::string> kSplitNames = {"share", "time", "file"};

PartitionSpec read_partition(config::Reader& reader) {
  PartitionSpec spec;
  const std::size_t kind = reader.choice(
      "kind", kPartitionNames, 0,
      "How the training samples are distributed over the clients.\niid: random samples, equally many for "
      "each client.\ndirichlet: label proportions drawn from a Dirichlet distribution with parameter "
      "alpha.\npathological: classes_per_client different labels for each client.\nshards: shards_per_client "
      "shards of the data, sorted by label, for each client.\nlinear: random samples; client i gets a number "
      "proportional to i, counted from 1.\nsquare: as linear, but proportional to the square of "
      "i.\nexponential: as linear, but proportional to e to the power of i.\nnatural: the natural groups of "
      "the data set, dealt to the clients in turn; for images, the groups are the labels.\nown: every client "
      "has the samples of a file or directory of its own, which its owner names with --data.");
  spec.kind = static_cast<PartitionKind>(kind);
  spec.clients = to_size(reader.integer("clients", 10, {1, kMaxClients},
                                        "Number of clients over which the data is partitioned. own: number "
                                        "of clients that are expected. More may take part, unless the run "
                                        "has disagreements, differential privacy, the sampler poisson, a "
                                        "strategy that keeps sums of all clients (scaffold, feddyn) or a "
                                        "planner that gives clients different parts: then client numbers "
                                        "must be below this number."));
  if (reader.has("seed")) {
    spec.seed = static_cast<std::uint64_t>(reader.integer("seed", 0, {0, INT64_MAX}, kSeedDoc));
  } else {
    (void)reader.integer("seed", 0, {0, INT64_MAX}, kSeedDoc);
  }

  const bool dirichlet = spec.kind == PartitionKind::kDirichlet;
  const std::string of_kind =
      "has no effect with kind = \"" + kPartitionNames[kind] + "\"; it applies only to ";
  require_kind(reader, "samples_per_client", dirichlet || spec.kind == PartitionKind::kIid,
               of_kind + "iid and dirichlet");
  spec.samples_per_client =
      to_size(reader.integer("samples_per_client", 0, {0, kMaxSamples},
                             "iid, dirichlet: number of samples of each client. 0: distribute all samples."));
  const bool may_replicate =
      dirichlet || spec.kind == PartitionKind::kIid || spec.kind == PartitionKind::kNatural;
  require_kind(reader, "replicate", may_replicate, of_kind + "iid, dirichlet and natural");
  spec.replicate = reader.boolean(
      "replicate", false,
      "iid, dirichlet, natural: whether several clients may hold the same samples, so that there may be more "
      "clients than samples.\niid, dirichlet: requires samples_per_client; each client draws its samples "
      "from "
      "all samples.\nnatural: client i has the same group as client i + the number of groups.");
  if (spec.replicate && spec.kind != PartitionKind::kNatural && spec.samples_per_client == 0)
    reader.fail("replicate", "needs samples_per_client: how many samples each client draws",
                {"data.partition.samples_per_client"});
  require_kind(reader, "alpha", dirichlet, of_kind + "dirichlet");
  spec.alpha = reader.number(
      "alpha", 0.5, {1e-4, 1e6},
      "dirichlet: concentration parameter. Smaller values make the labels of the clients differ more.");
  require_kind(reader, "min_size", dirichlet, of_kind + "dirichlet");
  require_beside(reader, "min_size", spec.samples_per_client == 0,
                 "has no effect with samples_per_client, which gives every client the same number of samples",
                 "data.partition.samples_per_client");
  spec.min_size = to_size(reader.integer(
      "min_size", 1, {0, kMaxSamples},
      "dirichlet, without samples_per_client: minimum number of samples of a client. "
      "The draw is repeated, at most 1000 times, until every client has at least this number."));
  require_kind(reader, "classes_per_client", spec.kind == PartitionKind::kPathological,
               of_kind + "pathological");
  spec.classes_per_client = to_size(reader.integer(
      "classes_per_client", 2, {1, kMaxClasses}, "pathological: number of different labels of each client."));
  require_kind(reader, "shards_per_client", spec.kind == PartitionKind::kShards, of_kind + "shards");
  spec.shards_per_client = to_size(
      reader.integer("shards_per_client", 2, {1, kMaxSamples}, "shards: number of shards of each client."));
  return spec;
}

TokenizerSpec read_tokenizer(config::Reader& reader, bool text) {
  TokenizerSpec spec;
  spec.kind = static_cast<TokenizerKind>(reader.choice(
      "kind", kTokenizerNames, static_cast<std::size_t>(spec.kind),
      "texts: how a text is divided into tokens.\nbytes: each byte is a token.\nascii: each of "
      "96 characters is a token.\nbpe: byte-pair encoding with the table in file.\nvocabulary: the "
      "tokenizer of a published language model."));
  const bool table = spec.kind == TokenizerKind::kBpe || spec.kind == TokenizerKind::kVocabulary;
  spec.file =
      reader.text("file", "",
                  "Path of the tokenizer. bpe: the table that `fedge data tokenizer` wrote. vocabulary: "
                  "a tokenizer.json (Hugging Face), tokenizer.model (SentencePiece) or tokenizer.bin "
                  "(llama2.c).");
  spec.table = reader.text("table", "",
                           "The content of the tokenizer, in Fedge's format. Set automatically from file.");
  spec.table_hash =
      reader.text("table_hash", "",
                  "SHA-256 of the content of a long tokenizer, which stays outside the run file. "
                  "Set automatically from file or model.base.");
  if (!spec.table_hash.empty() && !is_hex_digest(spec.table_hash))
    reader.fail("table_hash", "is not a SHA-256 in 64 hexadecimal digits");
  for (const char* key : {"kind", "file", "table", "table_hash"})
    require_beside(reader, key, text, "has no effect on a data set that is not a text", "data.dataset");
  for (const char* key : {"file", "table", "table_hash"})
    require_kind(reader, key, table, "has no effect without kind = \"bpe\" or \"vocabulary\"");
  if (table && spec.file.empty() && spec.table.empty() && spec.table_hash.empty())
    reader.fail("file",
                spec.kind == TokenizerKind::kBpe
                    ? "is required with kind = \"bpe\"; name a table written by `fedge data tokenizer`"
                    : "is required with kind = \"vocabulary\"; name the tokenizer of a published model",
                {"data.tokenizer"});
  return spec;
}

SplitSpec read_split(config::Reader& reader) {
  SplitSpec spec;
  spec.kind = static_cast<SplitKind>(reader.choice(
      "kind", kSplitNames, 0,
      "data sets in files of the user: which samples are for testing.\nshare: a random share of the samples "
      "of "
      "each label.\ntime: the last samples, if the files are in the order of time.\nfile: the files of the "
      "directory whose names begin with \"test\"; training uses those whose names begin with \"train\"."));
  require_kind(reader, "test", spec.kind != SplitKind::kFile, "has no effect with kind = \"file\"");
  spec.test = reader.number("test", 0.2, {0.0, 0.9},
                            "share, time: fraction of the samples that is for testing. 0: none.");
  require_kind(reader, "seed", spec.kind == SplitKind::kShare,
               "has no effect with kind = \"" + kSplitNames[static_cast<std::size_t>(spec.kind)] + "\"");
  spec.seed = static_cast<std::uint64_t>(reader.integer(
      "seed", 0, {0, INT64_MAX},
      "share: seed of the draw. It is not the seed of the run, so that runs with different seeds "
      "have the same test samples."));
  return spec;
}

void read_place(config::Reader& reader, DataSpec& spec) {
  spec.name = reader.text("name", "",
                          "Name by which devices know their data of this run, as in `fedge-client run --data "
                          "NAME=PATH`. Empty: the name of the data set.");
  if (reader.has("name") && !is_data_name(spec.name))
    reader.fail("name", "must have 1 to " + std::to_string(kMaxName) + " letters, digits or ._+-");
  spec.directory = reader.text("directory", "",
                               "Directory of the data set's files, or path of the file. Only the coordinator "
                               "and the simulator use it; a device uses its own (--data). Empty: the default "
                               "directory of the data set, if it has one.");
}

}  // namespace

// Refuses a key that has no effect with the chosen kind. Callers still read every key, so that the generated
// reference lists it.
void require_kind(config::Reader& reader, const std::string& key, bool belongs, const std::string& message) {
  if (!belongs && reader.has(key)) reader.refuse(key, message);
}

// The same for a key whose effect depends on another key than `kind`.
void require_beside(config::Reader& reader, const std::string& key, bool belongs, const std::string& message,
                    const char* beside) {
  if (!belongs && reader.has(key)) reader.fail(key, message, {beside});
}

bool is_text(const DataSpec& spec) {
  const DatasetKind* kind = find_dataset_kind(spec.dataset);
  return kind != nullptr && kind->traits.text;
}

bool in_own_files(const DataSpec& spec) {
  const DatasetKind* kind = find_dataset_kind(spec.dataset);
  return kind != nullptr && kind->traits.files;
}

bool is_data_name(const std::string& name) {
  return !name.empty() && name.size() <= kMaxName &&
         name.find_first_not_of(kNameCharacters) == std::string::npos;
}

const std::string& data_name(const DataSpec& spec) { return spec.name.empty() ? spec.dataset : spec.name; }

const std::string& name_of(PartitionKind kind) { return kPartitionNames.at(static_cast<std::size_t>(kind)); }

DataSpec read_data(config::Reader& reader) {
  DataSpec spec;
  choose_dataset_kind(reader, spec);
  read_place(reader, spec);
  const std::string no_text = "has no effect on a data set that is not a text";
  require_beside(reader, "context", is_text(spec), no_text, "data.dataset");
  spec.context =
      to_size(reader.integer("context", 128, {2, kMaxContext}, "texts: length of a sample in tokens."));
  require_beside(reader, "unit", is_text(spec), no_text, "data.dataset");
  spec.unit =
      static_cast<TextUnit>(reader.choice("unit", kUnitNames, 0,
                                          "texts: what a sample is. Longer lines and paragraphs become "
                                          "several samples.\nwindow: consecutive tokens, as "
                                          "many as the context.\nline: a line that is not empty.\nparagraph: "
                                          "consecutive lines that are not empty."));
  require_beside(reader, "length_classes", is_text(spec), no_text, "data.dataset");
  spec.length_classes = to_size(reader.integer("length_classes", 0, {0, kMaxClasses},
                                               "texts: number of classes of lengths, with about as many "
                                               "samples each, that take the place of the groups as "
                                               "labels: then data.partition.kind = \"dirichlet\" gives "
                                               "clients samples of different lengths. 0: the groups "
                                               "are the labels."));
  require_beside(reader, "test_windows", is_text(spec), no_text, "data.dataset");
  spec.test_windows = to_size(reader.integer(
      "test_windows", 0, {0, kMaxSamples},
      "texts: number of test samples from the held-out text of each group, evenly spaced. 0: all."));
  spec.validation = reader.number(
      "validation", 0.0, {0.0, 0.5},
      "Fraction of the training samples, of each label or group, that no client gets and that replace the "
      "test samples in every evaluation. Use it to choose settings, such as the learning rate, without the "
      "test samples. 0: the test samples are used.");
  spec.federated_normalisation =
      reader.choice(
          "normalise", kNormaliseNames, 0,
          "data sets in files of the user: how numbers are normalised.\nconstants: by mean and "
          "deviation, if they are given.\nfederated: each column by its mean and standard deviation "
          "over the training samples of all clients. Before the first round the clients count their "
          "values, and only sums leave them; a missing number becomes the mean.") == 1;
  if (spec.federated_normalisation)
    for (const char* key : {"mean", "deviation", "target_mean", "target_deviation"})
      if (reader.has(key))
        reader.fail(key, "has no effect with normalise = \"federated\"", {"data.normalise"});
  config::Reader tokenizer = reader.section("tokenizer");
  spec.tokenizer = read_tokenizer(tokenizer, is_text(spec));
  reader.adopt(tokenizer);
  config::Reader partition = reader.section("partition");
  spec.partition = read_partition(partition);
  reader.adopt(partition);
  config::Reader split = reader.section("split");
  spec.split = read_split(split);
  reader.adopt(split);
  require_beside(reader, "split", in_own_files(spec),
                 "has no effect on a data set with test samples of its own", "data.dataset");
  read_dataset_options(reader, spec);
  require_beside(reader, "normalise", in_own_files(spec),
                 "has no effect on a data set that is not files of the user", "data.dataset");
  if (spec.federated_normalisation && !is_own(spec))
    reader.fail("normalise", "is for clients with data of their own; set data.partition.kind = \"own\"",
                {"data.partition.kind"});
  if (spec.source && spec.source->needs_statistics() && !spec.federated_normalisation)
    reader.fail(
        "categorical",
        "a column without values needs data.normalise = \"federated\", by which the clients agree on them",
        {"data.normalise"});
  if (is_own(spec) && in_own_files(spec) && spec.name.empty())
    reader.fail(
        "name",
        "is required with data.partition.kind = \"own\": the name by which devices know their data, as "
        "in: fedge-client run --data NAME=PATH",
        {"data.dataset", "data.partition.kind"});
  return spec;
}

}  // namespace fedge::learn
