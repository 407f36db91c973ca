// What a client must know to train: data, model, training. Read from a run file's sections of the
// same names; the coordinator sends clients these sections as canonical TOML, so that coordinator,
// client and simulator build the same thing from the same text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/local_model.h"
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
  kNatural
};

// learn/data/partition.h says what each kind does.
struct PartitionSpec {
  PartitionKind kind = PartitionKind::kIid;
  std::size_t clients = 10;
  double alpha = 0.5;                  // dirichlet: concentration, smaller = more skew
  std::size_t min_size = 1;            // dirichlet over everything: fewest samples a client may end up with
  std::size_t classes_per_client = 2;  // pathological: distinct labels of each client
  std::size_t shards_per_client = 2;   // shards: runs of the label-sorted data for each client
  std::size_t samples_per_client = 0;  // dirichlet, iid: exactly this many each; 0 = share everything
};

struct TokenizerSpec {
  TokenizerKind kind = TokenizerKind::kAscii;
  std::string file;   // bpe: where the coordinator reads the table
  std::string table;  // bpe: the table itself, which clients get
};

struct DataSpec {
  std::string dataset = "fashion-mnist";
  std::string directory;  // where its files lie; empty = where the Debian package puts them
  PartitionSpec partition;
  std::size_t context = 128;  // of a text: tokens in a sample
  TokenizerSpec tokenizer;
  std::size_t test_windows = 0;  // of a text: held-out samples a group that are tested on; 0: all
};

// Of all data sets there are.
const std::vector<std::string>& dataset_names();

// Whether this names one of learn/text/.
bool is_text(const DataSpec& spec);

enum class ModelKind { kSoftmax, kMlp, kCnn, kTransformer };

// Low-rank terms beside frozen weights (learn/models/adapters.h).
struct AdapterSpec {
  std::size_t rank = 0;              // 0: no adapters, the model itself is trained
  float scale = 2.0F;                // of every rank: alpha / rank of LoRA, the same for all clients
  std::vector<std::string> targets;  // layers that have one; empty: every one that can
};

struct ModelSpec {
  ModelKind kind = ModelKind::kMlp;
  std::vector<std::size_t> hidden = {200, 200};  // mlp: units of each hidden layer
  std::vector<std::size_t> channels = {32, 64};  // cnn: output channels of the two 5x5 convolutions
  std::size_t dense = 512;                       // cnn: units of the hidden dense layer
  std::size_t layers = 4;                        // transformer: blocks
  std::size_t width = 128;                       // transformer: floats a token in the residual stream
  std::size_t heads = 4;                         // transformer: of attention
  bool tied = true;                              // transformer: the head is the token embedding
  std::string base;       // a .safetensors file that the model begins as; the coordinator's, clients get it
  std::string base_hash;  // model_hash() of its values in hexadecimal; empty: whatever they are
  AdapterSpec adapter;
};

enum class ObjectiveKind { kPlain, kProximal, kScaffold, kRankPruning };

// How a client trains adapters so that their first ranks work without the others, with T its own rank and
// those of `ranks` below it (PreLort; Waseem et al. 2026, reconstructed from the abstract; section numbers
// are of what the realisations are taken from).
//   sum       each step the mean of the losses at every rank of T (Kusupati et al., "Matryoshka", NeurIPS
//             2022, eq. 1)
//   sample    each step one rank of T, drawn evenly; nothing beyond it moves (Valipour et al., "DyLoRA",
//             EACL 2023, section 3.1)
//   sandwich  each step the mean over the lowest, the highest and one drawn between (Yu and Huang, "slimmable
//             networks", ICCV 2019, section 3)
enum class NestingKind { kNone, kSum, kSample, kSandwich };

// What local training minimises, with w the model that a round starts from and v the one in training.
//   plain      the local loss
//   proximal   the local loss + mu/2 ||v - w||^2 (FedProx; Li et al., MLSys 2020, section 3.2)
//   rank_pruning   the local loss + lambda * sum over adapted matrices of ||B'|| ||A'||, where A' and B' are
//              the client's ranks from gamma * r on; if that sum ends below where it began, the client asks
//              for gamma * r ranks from then on (HetLoRA; Cho et al., EMNLP 2024, section 3.2)
//   scaffold   each gradient is moved by a correction c - c_k that comes with the round's assignment
//              (SCAFFOLD; Karimireddy et al., ICML 2020, algorithm 1)
struct ObjectiveSpec {
  ObjectiveKind kind = ObjectiveKind::kPlain;
  float mu = 0.0F;      // proximal; 0 is plain, to the bit
  float lambda = 0.0F;  // rank_pruning
  double gamma = 0.0;   // rank_pruning: share of its ranks that a client keeps
};

enum class OptimizerKind { kSgd, kAdamW };

// AdamW (Loshchilov and Hutter, ICLR 2019); its moments begin at zero in every round.
struct AdamSpec {
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
};

// How the learning rate changes over a run, step by step, on every client alike: with p the share of the
// run that is over, it rises evenly to learning_rate until p = warmup, then falls along half a cosine to
// `final` times learning_rate at p = 1 (Loshchilov and Hutter, SGDR, ICLR 2017, eq. 5).
struct RateSchedule {
  bool cosine = false;  // else constant
  double warmup = 0;
  double final = 0;
  std::size_t rounds = 1;  // of the run; clients are told
};

struct TrainingSpec {
  OptimizerKind optimizer = OptimizerKind::kSgd;
  float learning_rate = 0.05F;
  float momentum = 0.0F;
  float weight_decay = 0.0F;
  AdamSpec adam;
  RateSchedule schedule;
  std::size_t local_epochs = 1;
  std::size_t local_steps = 0;  // in place of epochs: so many steps, epoch after epoch; 0: local_epochs
  std::size_t batch_size = 20;
  // Of the time that a task has: once this share has passed, a client sends what it has trained until then
  // (FedProx's partial work; Li et al., MLSys 2020, section 3.1). 0: it trains to the end.
  double partial_work = 0.0;
  ObjectiveSpec objective;
  // Optimizer steps that training on so many samples takes; more than 0 samples.
  std::uint64_t steps(std::uint64_t samples) const {
    return local_steps > 0 ? local_steps : ((samples - 1) / batch_size + 1) * local_epochs;
  }
  LocalModel local_model = LocalModel::kWhole;  // what runs where a part of the model is trained
  std::vector<double> widths;                   // kNested: shares of the width that a step may draw
  NestingKind nesting = NestingKind::kNone;     // kPrefix
  std::vector<std::size_t> ranks;               // kPrefix: where adapters may be cut off, ascending
};

struct TaskSpec {
  DataSpec data;
  ModelSpec model;
  TrainingSpec training;
};

// The names of these values in a run file.
const std::string& name_of(PartitionKind kind);
const std::string& name_of(ModelKind kind);
const std::string& name_of(OptimizerKind kind);

// The values of training.objective.kind.
std::span<const config::KindDoc> objective_kinds();

// Reads the sections [data], [model] and [training] of a run file; a section that is absent has its
// defaults. A key that does not belong to the chosen kind is an error like an unknown one. Errors are
// left in `root`, for its finish(); what is returned is then not to be used.
TaskSpec read_task(config::Reader& root);
// The names of those sections, for readers that pass over them.
const std::vector<std::string>& task_sections();

}  // namespace fedge::learn
