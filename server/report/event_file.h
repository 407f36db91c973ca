// EventFile: the metrics of a run as scalars for TensorBoard, in events.out.tfevents.fedge. The file is a
// sequence of records (TFRecord), each an Event message of TensorFlow. A record reaches the file with its
// round, so that TensorBoard shows a run while it proceeds.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "core/result.h"
#include "server/report/metrics.h"

namespace fedge::server {

inline constexpr const char* kEventFileName = "events.out.tfevents.fedge";

class EventFile {
 public:
  // Creates the file in this directory, or empties it. `started`: Unix time of the run's start, in seconds.
  static Result<EventFile> create(const std::filesystem::path& directory, double started);

  // Adds a scalar for each number of the round that was measured, at step `round`. Its tag is the name in
  // metrics.csv after a group: "model/test_loss", "traffic/bytes_up".
  Result<void> add(const RoundMetrics& metrics);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  EventFile(std::filesystem::path path, double started, std::FILE* file)
      : path_(std::move(path)), started_(started), file_(file) {}
  Result<void> write(const std::string& event);

  std::filesystem::path path_;
  double started_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace fedge::server
