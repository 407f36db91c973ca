// Metrics of the coordinator's node in the directory, for /metrics.
#pragma once

#include <array>

#include "dht/network_directory.h"
#include "server/admin/exposition.h"

namespace fedge::server {

// Current state of the coordinator's node.
struct DirectoryFigures {
  dht::NetworkStatus status;
  dht::FlawCounts ignored;
};

inline constexpr MetricFamily kDirectoryNodes{
    "fedge_directory_nodes", MetricType::kGauge,
    "Directory nodes that the coordinator knows. State good: the node answered recently.", "state"};
inline constexpr MetricFamily kDirectoryRecords{"fedge_directory_stored_records", MetricType::kGauge,
                                                "Records that the coordinator stores for the directory."};
inline constexpr MetricFamily kDirectoryBytes{
    "fedge_directory_stored_bytes", MetricType::kGauge,
    "Bytes of the records that the coordinator stores for the directory."};
inline constexpr MetricFamily kDirectoryMessages{
    "fedge_directory_messages_total", MetricType::kCounter,
    "Requests sent to other directory nodes, and messages received from them.", "direction"};
inline constexpr MetricFamily kDirectoryRefused{
    "fedge_directory_refused_stores_total", MetricType::kCounter,
    "Records that the coordinator was asked to store and refused."};
inline constexpr MetricFamily kDirectoryIgnored{"fedge_directory_ignored_records_total", MetricType::kCounter,
                                                "Records that the coordinator received and ignored, by flaw.",
                                                "flaw"};

inline constexpr std::array kDirectoryFamilies = {kDirectoryNodes,    kDirectoryRecords, kDirectoryBytes,
                                                  kDirectoryMessages, kDirectoryRefused, kDirectoryIgnored};

void add_directory(Exposition& page, const DirectoryFigures& figures);

}  // namespace fedge::server
