#include "learn/weights/published.h"

#include <algorithm>
#include <string>
#include <utility>

namespace fedge::learn {
namespace {

// The rows of a matrix of each head, from pairs of neighbours to first and second halves.
void join_halves(std::span<const float> from, std::size_t rows, std::size_t heads, std::span<float> to) {
  const std::size_t width = from.size() / rows;
  const std::size_t size = rows / heads;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t within = r % size;
    const std::size_t source = r - within + 2 * (within % (size / 2)) + within / (size / 2);
    std::ranges::copy(from.subspan(source * width, width),
                      to.begin() + static_cast<std::ptrdiff_t>(r * width));
  }
}

std::string size_text(const std::vector<std::size_t>& shape) {
  std::string text;
  for (const std::size_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

// Whether the tensor is a part of the arranged matrix.
bool fits(const TensorInfo& tensor, const StoredWeight& stored, const WeightPart& part) {
  std::vector<std::size_t> shape = stored.shape;
  if (part.arrangement == Arrangement::kTransposed) std::ranges::reverse(shape);
  if (shape.size() != tensor.shape.size() || shape.empty()) return false;
  const std::size_t rows = tensor.shape[0];
  if (part.first_row > shape[0] || rows > shape[0] - part.first_row) return false;
  if (part.arrangement == Arrangement::kInterleaved &&
      (rows != shape[0] || rows % part.heads != 0 || rows / part.heads % 2 != 0))
    return false;
  return std::equal(shape.begin() + 1, shape.end(), tensor.shape.begin() + 1);
}

Result<void> read_part(const WeightFile& file, const WeightPart& part, const TensorInfo& tensor,
                       std::span<float> out) {
  const StoredWeight* stored = file.find(part.stored);
  if (stored == nullptr) return invalid(file.path().string() + ": the tensor " + part.stored + " is missing");
  if (!fits(tensor, *stored, part))
    return invalid(file.path().string() + ": the tensor " + part.stored + " is " + size_text(stored->shape) +
                   ", which does not suit " + tensor.name + " of " + size_text(tensor.shape));
  if (part.arrangement == Arrangement::kSame && stored->elements() == out.size())
    return file.read(*stored, out);
  std::vector<float> whole(stored->elements());
  FEDGE_TRY_VOID(file.read(*stored, whole));
  const std::size_t width = tensor.size / tensor.shape[0];
  switch (part.arrangement) {
    case Arrangement::kSame:
      std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(part.first_row * width), out.size(),
                  out.begin());
      break;
    case Arrangement::kTransposed: {
      const std::size_t columns = stored->shape[1];
      for (std::size_t r = 0; r < tensor.shape[0]; ++r)
        for (std::size_t i = 0; i < width; ++i) out[r * width + i] = whole[i * columns + part.first_row + r];
      break;
    }
    case Arrangement::kInterleaved:
      join_halves(whole, tensor.shape[0], part.heads, out);
      break;
  }
  return {};
}

}  // namespace

Result<void> fill_vocabulary(Vocabulary& vocabulary, std::size_t tokens) {
  if (tokens > kMaxTokens)
    return invalid("the model's embedding has " + std::to_string(tokens) + " rows; at most " +
                   std::to_string(kMaxTokens) + " are allowed");
  if (vocabulary.tokens.size() > tokens)
    return invalid("the tokenizer has " + std::to_string(vocabulary.tokens.size()) +
                   " tokens, but the model's embedding has only " + std::to_string(tokens));
  while (vocabulary.tokens.size() < tokens) vocabulary.add("", TokenKind::kControl);
  return {};
}

Result<ParameterVector> read_weights(const PublishedModel& published,
                                     std::shared_ptr<const ParameterLayout> layout) {
  ParameterVector values(std::move(layout));
  for (const TensorInfo& tensor : values.layout().tensors()) {
    const auto part = std::ranges::find(published.parts, tensor.name, &WeightPart::tensor);
    if (part == published.parts.end()) return invalid("the model has no tensor for " + tensor.name);
    FEDGE_TRY_VOID(read_part(published.files[part->file], *part, tensor, values.tensor(tensor)));
  }
  return values;
}

Result<PublishedModel> open_published(const std::filesystem::path& path,
                                      const std::filesystem::path& tokenizer) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return open_hugging_face(path, tokenizer);
  if (path.extension() == ".gguf") return open_gguf(path, tokenizer);
  if (path.extension() == ".bin") return open_llama2c(path, tokenizer);
  return invalid(path.string() +
                 ": not a published model; give a folder as on Hugging Face, a .gguf file, or a .bin file of "
                 "llama2.c");
}

}  // namespace fedge::learn
