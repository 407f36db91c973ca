// SplitLayout: the parameters below and above a cut of a transformer with adapters (split learning; Vepakomma
// et al. 2018; SplitFed, Thapa et al., AAAI 2022). A client that is cut at block l, from 1 on, runs the
// embedding and the blocks 1 .. l and trains their adapters; a server runs the other blocks and the head and
// trains theirs. Next to the cut, in the blocks l and l + 1, only the first `cut_ranks` ranks are trained
// (SplitFT; Shan et al., arXiv:2604.26388, 2026).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/adapter_layout.h"
#include "core/aligned_buffer.h"
#include "core/coverage.h"
#include "core/parameters.h"
#include "core/result.h"

namespace fedge {

class SplitLayout {
 public:
  // kInvalid, if there are no adapters or fewer ranks than `cut_ranks`. 0: all ranks of all blocks are
  // trained.
  static Result<SplitLayout> of(const ParameterLayout& layout, const AdapterLayout& adapters,
                                std::size_t cut_ranks);

  std::size_t blocks() const { return blocks_.size(); }
  // What the client trains and sends; 1 <= cut <= blocks().
  Coverage below(std::size_t cut) const { return between(0, cut, cut, cut_ranks_); }
  // What the server trains. Empty if the cut is behind the last block.
  Coverage above(std::size_t cut) const { return between(cut, blocks(), cut, cut_ranks_); }
  // All parameters that the client's passes read. `head`: also what follows the last block, for a client that
  // computes the loss itself.
  Coverage read_below(std::size_t cut, bool head) const;
  // The adapters that the server's passes read.
  Coverage read_above(std::size_t cut) const;
  // below() and above() together.
  Coverage both(std::size_t cut) const { return below(cut).unite(above(cut)); }
  // Packs values over below() and values over above() into values over both().
  void join(std::size_t cut, std::span<const float> below, std::span<const float> above,
            std::span<float> both) const;
  // The cut of a client that trains this coverage; 0 if it is not below() of any cut.
  std::size_t cut_of(const Coverage& below) const;
  // The parameters that change with a client that trains these: both() of their cut, or only these without
  // one.
  Coverage changed_by(const Coverage& trained) const;
  // join() for a client that trains these. kInvalid: they have no cut, or the numbers of values do not fit.
  Result<AlignedBuffer<float>> joined(const Coverage& trained, std::span<const float> below,
                                      std::span<const float> above) const;

 private:
  // The matrices of a block: rows of A and columns of B within a rank, each one range.
  struct Block {
    Range a;
    Range b;
  };
  // The adapters of the blocks first + 1 .. last; next to the cut only `cut_ranks`.
  Coverage between(std::size_t first, std::size_t last, std::size_t cut, std::size_t cut_ranks) const;

  AdapterLayout adapters_;
  std::vector<Block> blocks_;
  std::vector<std::size_t>
      ends_;  // by block: end of the frozen parameters of the embedding and the blocks to it
  std::size_t cut_ranks_ = 0;
};

}  // namespace fedge
