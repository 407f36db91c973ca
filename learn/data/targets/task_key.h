// The key data.task of data sets whose files can have several kinds of targets.
#pragma once

#include <string>

#include "core/config/reader.h"
#include "learn/data/targets/target.h"

namespace fedge::learn {

TargetKind read_task_kind(config::Reader& section);

// Refuses a key that has no effect with this task. `tasks` names those with which it has.
void require_task(config::Reader& section, const std::string& key, TargetKind task, bool belongs,
                  const std::string& tasks);

}  // namespace fedge::learn
