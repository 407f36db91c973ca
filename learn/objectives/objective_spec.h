// ObjectiveSpec: the options of training.objective. A plain value.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace fedge::learn {

class Objective;
struct ObjectiveSpec;
using ObjectiveFactory = std::function<std::shared_ptr<const Objective>(const ObjectiveSpec&)>;

// What local training minimises. w is the model that the round starts from, v the model being trained.
//   plain      the local loss
//   proximal   the local loss + mu/2 ||v - w||^2 (FedProx; Li et al., MLSys 2020, section 3.2)
//   rank_pruning   the local loss + lambda * sum over adapted matrices of ||B'|| ||A'||, where A' and B' are
//              the client's ranks from gamma * r on. If training lowers that sum, the client asks for gamma *
//              r ranks in later rounds (HetLoRA; Cho et al., EMNLP 2024, section 3.2)
//   scaffold   the local loss; the correction c - c_k of the round's assignment is added to each gradient
//              (SCAFFOLD; Karimireddy et al., ICML 2020, algorithm 1)
//   dynamic    the local loss - g_k.v + alpha/2 ||v - w||^2, where g_k is -alpha times the sum of the
//              client's updates in earlier rounds (FedDyn; Acar et al., ICLR 2021, algorithm 1)
//   contrastive   the local loss + mu times the contrast of the representations under v with those under w
//              and under the client's last model (MOON; objectives/contrast.h)
struct ObjectiveSpec {
  std::string kind = "plain";  // in the table of learn/objectives/kinds.h
  float mu = 0.0F;             // proximal, contrastive; 0 gives bit for bit the result of plain
  float alpha = 0.0F;          // dynamic
  float temperature = 0.0F;    // contrastive
  float lambda = 0.0F;         // rank_pruning
  double gamma = 0.0;          // rank_pruning: fraction of its ranks that a client keeps
  ObjectiveFactory make;       // with the options of `kind` as read; empty: the fields above

  // Whether training continues from what the client's earlier tasks left.
  bool remembers() const { return kind == "scaffold" || kind == "dynamic" || kind == "contrastive"; }
};

}  // namespace fedge::learn
