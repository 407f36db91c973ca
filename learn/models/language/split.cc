#include "learn/models/language/split.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"

namespace fedge::learn {
namespace {

TransformerSpace& space_of(Workspace& workspace) { return static_cast<TransformerSpace&>(workspace); }

class TransformerSplit final : public SplitModel {
 public:
  explicit TransformerSplit(const TransformerParts& parts) : parts_(parts) {
    FEDGE_CHECK(!parts.adapters.empty(), "a transformer with adapters");
  }

  std::size_t blocks() const override { return parts_.shape.layers; }
  std::size_t width() const override { return parts_.shape.width; }
  std::size_t sequences(std::size_t max_batch) const override { return parts_.shape.sequences(max_batch); }

  void for_each_piece(const Batch& batch, std::size_t cut, const Workspace& workspace,
                      const std::function<bool(const SplitPiece&)>& visit) const override {
    bool goes_on = true;
    visit_pieces(parts_, batch, static_cast<const TransformerSpace&>(workspace),
                 [&](std::size_t first, std::size_t count) {
                   const SplitPiece piece{cut, first, count, parts_.length_of(batch)};
                   goes_on = goes_on && visit(piece);
                 });
  }

  void clear_gradient(std::span<float> gradient) const override {
    const AdapterLayout& shape = parts_.adapters.shape();
    std::memset(gradient.data() + shape.offset, 0, shape.rank * shape.row * sizeof(float));
  }

  void embed(std::span<const float> parameters, const Batch& batch, const SplitPiece& piece,
             std::span<float> out, Workspace& workspace) const override {
    TransformerSpace& space = space_of(workspace);
    space.prepare(true, piece.cut);
    const Pass pass = parts_.pass(parameters, piece.length, piece.rows, space, nullptr);
    learn::embed(pass, batch.tokens.subspan(piece.first, piece.rows));
    copy(space.input(0), out, piece);
  }

  void lower_forward(std::span<const float> parameters, const Batch& batch, const SplitPiece& piece,
                     std::span<float> h, Workspace& workspace) const override {
    TransformerSpace& space = space_of(workspace);
    space.prepare(true, piece.cut);
    const Pass pass = parts_.pass(parameters, piece.length, piece.rows, space, nullptr);
    learn::embed(pass, batch.tokens.subspan(piece.first, piece.rows));
    blocks_forward(pass, 0, piece.cut);
    copy(space.input(piece.cut), h, piece);
  }

  void upper_forward(std::span<const float> parameters, const SplitPiece& piece, std::span<const float> h,
                     std::span<float> z, Workspace& workspace) const override {
    TransformerSpace& space = space_of(workspace);
    space.prepare(true, blocks() - piece.cut);
    const Pass pass = parts_.pass(parameters, piece.length, piece.rows, space, nullptr);
    std::copy_n(h.data(), floats(piece), space.input(piece.cut));
    blocks_forward(pass, piece.cut, blocks());
    copy(space.input(blocks()), z, piece);
  }

  void head(std::span<const float> parameters, const SplitPiece& piece, std::span<const Token> targets,
            std::size_t total, std::span<float> z, std::span<double> losses,
            Workspace& workspace) const override {
    FEDGE_CHECK(targets.size() == piece.rows && losses.size() == piece.rows / piece.length,
                "targets of the piece");
    TransformerSpace& space = space_of(workspace);
    space.prepare(true, 0);
    const Pass pass = parts_.pass(parameters, piece.length, piece.rows, space, nullptr);
    TokenLoss loss(targets, piece.length, total);
    head_loss(pass, z.data(), 0, loss);
    std::ranges::copy(loss.losses(), losses.begin());
    copy(space.dx.data(), z, piece);
  }

  void upper_backward(std::span<const float> parameters, const SplitPiece& piece, std::span<const float> dz,
                      std::span<float> dh, std::span<float> gradient, Workspace& workspace) const override {
    TransformerSpace& space = space_of(workspace);
    const Pass pass = parts_.pass(parameters, piece.length, piece.rows, space, gradient.data());
    std::copy_n(dz.data(), floats(piece), space.dx.data());
    blocks_backward(pass, piece.cut, blocks());
    copy(space.dx.data(), dh, piece);
  }

  void lower_backward(std::span<const float> parameters, const SplitPiece& piece, std::span<const float> dh,
                      std::span<float> gradient, Workspace& workspace) const override {
    TransformerSpace& space = space_of(workspace);
    const Pass pass = parts_.pass(parameters, piece.length, piece.rows, space, gradient.data());
    std::copy_n(dh.data(), floats(piece), space.dx.data());
    blocks_backward(pass, 0, piece.cut);
  }

 private:
  std::size_t floats(const SplitPiece& piece) const { return piece.rows * width(); }
  void copy(const float* from, std::span<float> to, const SplitPiece& piece) const {
    std::copy_n(from, floats(piece), to.data());
  }

  const TransformerParts& parts_;
};

}  // namespace

std::unique_ptr<SplitModel> make_transformer_split(const TransformerParts& parts) {
  return std::make_unique<TransformerSplit>(parts);
}

}  // namespace fedge::learn
