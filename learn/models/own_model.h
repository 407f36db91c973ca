// A model of a kind that a program registers (core/config/own_part.h): what it returns is checked, and
// exceptions become a PartFailure that names the kind.
#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "learn/model.h"

namespace fedge::learn {

// Wraps the model that the kind's factory made for `context`. `part` names the kind: "the model prototypes".
// kInvalid if the model does not fit the data.
Result<std::unique_ptr<Model>> wrap_own_model(const std::string& part, std::unique_ptr<Model> model,
                                              const ModelContext& context);

}  // namespace fedge::learn
