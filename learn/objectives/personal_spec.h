// PersonalSpec: parameters that each client trains and keeps for itself (section [training.personal]). They
// never leave it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/coverage.h"
#include "core/parameters.h"
#include "core/result.h"

namespace fedge::learn {

// w are the shared parameters, h those of the layers in model.personal.
//   fedper   trains w and h together; only w is sent (Arivazhagan et al. 2019, algorithm 1)
//   fedrep   trains h for head_epochs while w is fixed, then w as usual while h is fixed (Collins et al.,
//            ICML 2021, algorithm 1)
//   ditto    trains and sends all parameters w as usual, and beside them a second model v, from v as the last
//            task left it, by steps along the gradient of its loss + lambda/2 ||v - w||^2, where w is the
//            model of the task (Li et al., ICML 2021, algorithm 1)
enum class PersonalKind { kNone, kFedPer, kFedRep, kDitto };

struct PersonalSpec {
  PersonalKind kind = PersonalKind::kNone;
  std::size_t head_epochs = 10;     // fedrep
  std::size_t personal_epochs = 0;  // ditto: of v in each task; 0: as many epochs or steps as of w
  float lambda = 0.1F;              // ditto

  bool on() const { return kind != PersonalKind::kNone; }
  // Whether a part of the model stays on the clients.
  bool keeps_layers() const { return kind == PersonalKind::kFedPer || kind == PersonalKind::kFedRep; }
};

// `layers`: model.personal.
PersonalSpec read_personal(config::Reader& section, const std::vector<std::string>& layers);

// Marks the tensors of these layers as not trainable, so that no update contains them. A name is that of a
// tensor, or of a layer whose tensors begin with it and a point. kInvalid if a name fits no tensor, or no
// other parameters are left.
Result<ParameterLayout> with_personal(const ParameterLayout& layout, const std::vector<std::string>& names);

}  // namespace fedge::learn
