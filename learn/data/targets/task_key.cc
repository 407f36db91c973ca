#include "learn/data/targets/task_key.h"

namespace fedge::learn {

TargetKind read_task_kind(config::Reader& section) {
  return static_cast<TargetKind>(section.choice(
      "task", task_names(), 0,
      "What the model predicts.\nclassification: the class of a sample.\nmulti-label: which labels a sample "
      "has; it may have several or none.\nsegmentation: the class of each point of a sample.\nregression: "
      "numbers."));
}

void require_task(config::Reader& section, const std::string& key, TargetKind task, bool belongs,
                  const std::string& tasks) {
  if (!belongs && section.has(key))
    section.fail(
        key,
        "has no effect with task = \"" + TargetShape{.kind = task}.task() + "\"; it applies only to " + tasks,
        {"data.task"});
}

}  // namespace fedge::learn
