// TaskSpec: the data, model and training that a client needs to know. It is read from the run file's sections
// of the same names. The coordinator sends clients these sections as canonical TOML, so that coordinator,
// client and simulator build the same objects from the same text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/local_model.h"
#include "core/result.h"
#include "learn/layers/layer_spec.h"
#include "learn/models/compact_weights.h"
#include "learn/models/language/rotary.h"
#include "learn/objectives/loss_spec.h"
#include "learn/objectives/objective_spec.h"
#include "learn/objectives/personal_spec.h"
#include "learn/split/split_training_spec.h"
#include "learn/text/tokenizer.h"

namespace fedge::learn {

enum class PartitionKind {
  kIid,
  kDirichlet,
  kPathological,
  kShards,
  kLinear,
  kSquare,
  kExponential,
  kNatural,
  kOwn
};

// learn/data/partition.h says what each kind does.
struct PartitionSpec {
  PartitionKind kind = PartitionKind::kIid;
  std::size_t clients = 10;
  double alpha = 0.5;        // dirichlet: concentration; smaller values skew more
  std::size_t min_size = 1;  // dirichlet without samples_per_client: minimum number of samples of a client
  std::size_t classes_per_client = 2;  // pathological: distinct labels of each client
  std::size_t shards_per_client = 2;   // shards: runs of the label-sorted data for each client
  std::size_t samples_per_client = 0;  // dirichlet, iid: exact number; 0: all
  bool replicate = false;              // iid, dirichlet, natural: several clients may hold the same samples
  std::optional<std::uint64_t> seed = {};  // of the draws of the partition; nothing: the run's seed
};

// How a file's samples are divided into training and test samples (learn/data/files/split.h).
//   share   a random share of each label's samples is for testing
//   time    the last samples are
//   file    files of the directory whose names begin with "train" or "test"
enum class SplitKind { kShare, kTime, kFile };

struct SplitSpec {
  SplitKind kind = SplitKind::kShare;
  double test = 0.2;       // share, time: fraction of the samples
  std::uint64_t seed = 0;  // share: of the draw
};

struct TokenizerSpec {
  TokenizerKind kind = TokenizerKind::kAscii;
  std::string file;   // bpe, vocabulary: path from which the coordinator reads the table
  std::string table;  // bpe, vocabulary: the content of the table
  // SHA-256 of the table, in hexadecimal, if it is too long for the task that clients receive: they fetch it
  // apart. Else empty.
  std::string table_hash;
};

// Defines a sample of a text. A line or paragraph that is longer than the context becomes several samples.
//   window      consecutive tokens, as many as the context
//   line        a line that is not empty
//   paragraph   consecutive lines that are not empty
enum class TextUnit { kWindow, kLine, kParagraph };

class DataSource;  // learn/data/dataset.h

struct DataSpec {
  std::string dataset = "fashion-mnist";  // in the table of learn/data/kinds.h
  std::string name;       // by which devices know their data of this run; empty: that of the data set
  std::string directory;  // of the data set's files; empty: the Debian package's
  PartitionSpec partition;
  std::size_t context = 128;  // texts: tokens in a sample
  TextUnit unit = TextUnit::kWindow;
  // Texts: number of classes of lengths, with about as many samples each, which are the labels; 0: the groups
  // are.
  std::size_t length_classes = 0;
  TokenizerSpec tokenizer;
  SplitSpec split;  // of data sets that are files of the user
  // The clients' statistics normalise the numeric columns, which are read as they are.
  bool federated_normalisation = false;
  std::size_t test_windows = 0;  // texts: test samples from the held-out text of each group; 0: all
  double validation =
      0;  // fraction of the training samples that replace the test samples (data/validation.h)
  std::shared_ptr<const DataSource> source;  // with the options of `dataset` as read; null: default options
};

// Whether the data set is a text (learn/text/).
bool is_text(const DataSpec& spec);
// Whether its samples are in files of the user, at a path that only the device or the researcher knows.
bool in_own_files(const DataSpec& spec);
// Whether every client has samples of its own, which the coordinator does not know.
inline bool is_own(const DataSpec& spec) { return spec.partition.kind == PartitionKind::kOwn; }
// The name in --data NAME=PATH.
const std::string& data_name(const DataSpec& spec);

class Model;
struct ModelContext;  // learn/model.h
using ModelFactory = std::function<Result<std::unique_ptr<Model>>(const ModelContext&)>;

// Low-rank terms added to frozen weights (learn/models/adapters.h).
struct AdapterSpec {
  std::size_t rank = 0;              // 0: no adapters, the model itself is trained
  float scale = 2.0F;                // alpha / rank of LoRA; the same for every rank and client
  std::vector<std::string> targets;  // layers with an adapter; empty: every layer that can have one
};

// The most blocks of a language model.
inline constexpr std::size_t kMaxBlocks = 256;

// The sizes of a language model (learn/models/language/transformer.h).
struct LanguageSpec {
  std::size_t layers = 4;     // blocks
  std::size_t width = 128;    // floats per token in the residual stream
  std::size_t heads = 4;      // attention heads of a block
  bool tied = true;           // the output layer uses the token embedding
  std::size_t positions = 0;  // longest context, with an embedding each in a transformer; 0: data.context
  std::size_t kv_heads = 0;   // llama: heads with keys and values of their own; 0: all
  std::size_t mlp_width = 0;  // llama: units of the MLP; 0: 8/3 of the width, rounded up to a multiple of 8
  float epsilon = 1e-5F;      // llama: of the norms
  RotarySpec rotary;          // llama
};

// A tensor of a model of which Fedge knows nothing else.
struct NamedShape {
  std::string name;
  std::vector<std::size_t> shape;  // outermost dimension first, all positive; empty: a single number
};

struct ModelSpec {
  std::string kind = "mlp";                      // in the table of learn/models/kinds.h
  std::vector<std::size_t> hidden = {200, 200};  // mlp: units of each hidden layer
  std::vector<std::size_t> channels = {32, 64};  // cnn: output channels of the two 5x5 convolutions
  std::size_t dense = 512;                       // cnn: units of the hidden dense layer
  LanguageSpec language;                         // transformer, llama
  std::vector<LayerSpec> network;                // layers
  Initialisation initialisation = Initialisation::kUniform;  // layers
  std::vector<NamedShape> tensors;                           // external
  std::string base;  // path of a .safetensors file with the initial weights; only the coordinator reads it
  std::string base_hash;  // model_hash() of its values in hexadecimal; empty: not checked
  AdapterSpec adapter;
  BaseDtype base_dtype = BaseDtype::kFloat32;  // of the matrices that are not trained
  std::vector<std::string> personal;  // layers that stay on the clients (learn/objectives/personal_spec.h)
  ModelFactory make;                  // with the options of `kind` as read; empty: the kind's default options
};

// How a client trains adapters whose first ranks must work alone. T is the set of the client's own rank and
// the lower ranks in `ranks`. After PreLort (Waseem et al. 2026), reconstructed from the abstract; each kind
// names the paper and section that it is taken from.
//   sum       each step minimises the mean of the losses at every rank in T (Kusupati et al., "Matryoshka",
//             NeurIPS 2022, eq. 1)
//   sample    each step draws one rank of T evenly and moves nothing beyond it (Valipour et al., "DyLoRA",
//             EACL 2023, section 3.1)
//   sandwich  each step minimises the mean over the lowest rank, the highest and one drawn between them
//             (Yu and Huang, "slimmable networks", ICCV 2019, section 3)
enum class NestingKind { kNone, kSum, kSample, kSandwich };

// Whether a client trains the next round's part while its update is under way (ParaBlock; Wang, Cao, Chen,
// arXiv:2511.19959). The next model then still lacks this round's aggregate, so the part that the client has
// just trained stands as:
//   local   its own new values
//   stale   the values before its training
enum class OverlapKind { kNone, kLocal, kStale };

enum class OptimizerKind { kSgd, kAdamW };

// AdamW (Loshchilov and Hutter, ICLR 2019). Its moments are zero at the beginning of every round.
struct AdamSpec {
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
};

// The learning rate of each step, the same on every client. With p the completed fraction of the run, the
// rate rises linearly to learning_rate until p = warmup. Then it falls along half a cosine to `final` times
// learning_rate at p = 1 (Loshchilov and Hutter, SGDR, ICLR 2017, eq. 5).
struct RateSchedule {
  bool cosine = false;  // false: constant
  double warmup = 0;
  double final = 0;
  std::size_t rounds = 1;  // rounds of the run, sent to clients
};

struct TrainingSpec {
  OptimizerKind optimizer = OptimizerKind::kSgd;
  float learning_rate = 0.05F;
  float momentum = 0.0F;
  float weight_decay = 0.0F;
  AdamSpec adam;
  RateSchedule schedule;
  std::size_t local_epochs = 1;
  std::size_t local_steps = 0;  // steps of a round, which replace local_epochs; 0: local_epochs applies
  std::size_t batch_size = 20;
  // Fraction of a task's time after which a client stops training and sends its update (FedProx's partial
  // work; Li et al., MLSys 2020, section 3.1). 0: it always completes its training.
  double partial_work = 0.0;
  // Whether the loss that a client reports is that of the round's model on all samples that it trains on, in
  // place of the mean over its steps.
  bool start_loss = false;
  bool recompute = false;  // of a transformer's activations (Workspace::recompute)
  ObjectiveSpec objective;
  LossSpec loss;
  PersonalSpec personal;
  // Number of optimizer steps of training on this many samples, which must be more than 0.
  std::uint64_t steps(std::uint64_t samples) const {
    return local_steps > 0 ? local_steps : ((samples - 1) / batch_size + 1) * local_epochs;
  }
  LocalModel local_model = LocalModel::kWhole;  // what a client runs if it trains a part
  std::vector<double> widths;                   // kNested: fractions of the width that a step may draw
  NestingKind nesting = NestingKind::kNone;     // kPrefix
  std::vector<std::size_t> ranks;  // kPrefix: ranks to which adapters may be truncated, ascending
  OverlapKind overlap = OverlapKind::kNone;
  SplitTrainingSpec split;  // kSplit
};

struct TaskSpec {
  DataSpec data;
  ModelSpec model;
  TrainingSpec training;
};

// The names of these values in a run file.
const std::string& name_of(PartitionKind kind);
const std::string& name_of(OptimizerKind kind);
const std::string& name_of(LocalModel model);

// Reads the sections [data], [model] and [training] of a run file; an absent section has its defaults. A key
// that does not belong to the chosen kind is an error. Errors are left in `root` for its finish(); if there
// are any, the result must not be used.
TaskSpec read_task(config::Reader& root);
// The names of these sections, for readers that ignore them.
const std::vector<std::string>& task_sections();

}  // namespace fedge::learn
