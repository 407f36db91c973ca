// llama2.c's .bin, version 0: seven little-endian int32 (width, MLP width, layers, heads, heads with keys,
// vocabulary, context; a negative vocabulary says that the head has weights of its own), then float32
// tensors, one kind for all layers at a time.
#include <array>
#include <bit>
#include <string>
#include <utility>

#include "learn/weights/published.h"

namespace fedge::learn {
namespace {

constexpr std::int64_t kMostSize = 1 << 20;

struct Llama2cHeader {
  std::size_t width, hidden, layers, heads, shared, vocabulary, context;
  bool tied;
};

Result<Llama2cHeader> read_llama2c_header(const ReadOnlyFile& file) {
  std::array<std::byte, 28> bytes{};
  const std::string name = file.path().string();
  if (file.size() < bytes.size())
    return Error{ErrorCode::kCorrupt, name + ": too short for a model of llama2.c"};
  FEDGE_TRY_VOID(file.read(0, bytes));
  std::array<std::int64_t, 7> fields{};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::uint32_t value = 0;
    for (std::size_t b = 4; b-- > 0;)
      value = value << 8U | std::to_integer<std::uint32_t>(bytes.at(4 * i + b));
    fields.at(i) = std::bit_cast<std::int32_t>(value);
  }
  const bool tied = fields[5] > 0;
  if (!tied) fields[5] = -fields[5];
  for (const std::int64_t field : fields)
    if (field < 1 || field > kMostSize)
      return Error{ErrorCode::kCorrupt,
                   name + ": not a model of llama2.c: a size in its header is " + std::to_string(field)};
  const auto at = [&](std::size_t i) { return static_cast<std::size_t>(fields.at(i)); };
  const Llama2cHeader header{at(0), at(1), at(2), at(3), at(4), at(5), at(6), tied};
  if (header.width % header.heads != 0 || header.heads % header.shared != 0 || header.layers > kMaxBlocks)
    return Error{ErrorCode::kCorrupt, name + ": not a model of llama2.c: the sizes in its header do not fit"};
  return header;
}

// Lists the tensors in the order of the file.
class Llama2cTensors {
 public:
  explicit Llama2cTensors(std::uint64_t offset) : offset_(offset) {}
  void add(const std::string& name, std::vector<std::size_t> shape) {
    StoredWeight weight{.name = name, .shape = std::move(shape), .offset = offset_};
    offset_ += weight.elements() * sizeof(float);
    found_.push_back(std::move(weight));
  }
  void add_layers(const Llama2cHeader& header, const std::string& name,
                  const std::vector<std::size_t>& shape) {
    for (std::size_t i = 1; i <= header.layers; ++i) add("block" + std::to_string(i) + "." + name, shape);
  }
  void skip(std::uint64_t floats) { offset_ += floats * sizeof(float); }
  std::vector<StoredWeight> take() { return std::move(found_); }

 private:
  std::uint64_t offset_;
  std::vector<StoredWeight> found_;
};

std::vector<StoredWeight> llama2c_tensors(const Llama2cHeader& h) {
  const std::size_t keys = h.width / h.heads * h.shared;
  Llama2cTensors tensors(28);
  tensors.add("token_embedding", {h.vocabulary, h.width});
  tensors.add_layers(h, "norm1.weight", {h.width});
  tensors.add_layers(h, "attention.q.weight", {h.width, h.width});
  tensors.add_layers(h, "attention.k.weight", {keys, h.width});
  tensors.add_layers(h, "attention.v.weight", {keys, h.width});
  tensors.add_layers(h, "attention.o.weight", {h.width, h.width});
  tensors.add_layers(h, "norm2.weight", {h.width});
  tensors.add_layers(h, "mlp.gate.weight", {h.hidden, h.width});
  tensors.add_layers(h, "mlp.down.weight", {h.width, h.hidden});
  tensors.add_layers(h, "mlp.up.weight", {h.hidden, h.width});
  tensors.add("norm.weight", {h.width});
  tensors.skip(h.context * (h.width / h.heads));  // tables of rotary positions
  if (!h.tied) tensors.add("head.weight", {h.vocabulary, h.width});
  return tensors.take();
}

}  // namespace

Result<PublishedModel> open_llama2c(const std::filesystem::path& path,
                                    const std::filesystem::path& tokenizer) {
  if (tokenizer.empty())
    return invalid(path.string() + ": a model of llama2.c needs its tokenizer.bin; name it with --tokenizer");
  FEDGE_TRY(file, ReadOnlyFile::open(path));
  FEDGE_TRY(header, read_llama2c_header(file));
  FEDGE_TRY(weights, WeightFile::make(std::move(file), llama2c_tensors(header)));
  FEDGE_TRY(vocabulary, read_vocabulary_file(tokenizer));
  PublishedModel model{.format = "llama2.c file", .vocabulary = std::move(vocabulary)};
  if (const auto filled = fill_vocabulary(model.vocabulary, header.vocabulary); !filled)
    return filled.error().with_prefix(tokenizer.string() + ": ");
  model.spec.kind = "llama";
  model.spec.language = {.layers = header.layers,
                         .width = header.width,
                         .heads = header.heads,
                         .tied = header.tied,
                         .positions = header.context,
                         .kv_heads = header.shared,
                         .mlp_width = header.hidden};
  for (const StoredWeight& weight : llama2c_tensors(header)) {
    WeightPart part{.tensor = weight.name, .stored = weight.name};
    if (weight.name.ends_with("attention.q.weight") || weight.name.ends_with("attention.k.weight")) {
      part.arrangement = Arrangement::kInterleaved;
      part.heads = weight.name.ends_with("q.weight") ? header.heads : header.shared;
    }
    model.parts.push_back(std::move(part));
  }
  model.files.push_back(std::move(weights));
  return model;
}

}  // namespace fedge::learn
