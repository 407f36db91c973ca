// A coordinator's part in the directory, for /metrics.
#pragma once

#include <array>

#include "dht/network_directory.h"
#include "server/admin/exposition.h"

namespace fedge::server {

// Its part in the directory, as of now.
struct DirectoryFigures {
  dht::NetworkStatus status;
  dht::FlawCounts ignored;
};

inline constexpr MetricFamily kDirectoryNodes{
    "fedge_directory_nodes", MetricType::kGauge,
    "Nodes of the directory that it knows: good ones have answered lately.", "state"};
inline constexpr MetricFamily kDirectoryRecords{"fedge_directory_stored_records", MetricType::kGauge,
                                                "Records that it keeps for the directory."};
inline constexpr MetricFamily kDirectoryBytes{"fedge_directory_stored_bytes", MetricType::kGauge,
                                              "Bytes of these."};
inline constexpr MetricFamily kDirectoryMessages{"fedge_directory_messages_total", MetricType::kCounter,
                                                 "Requests to other nodes, and messages from them.",
                                                 "direction"};
inline constexpr MetricFamily kDirectoryRefused{"fedge_directory_refused_stores_total", MetricType::kCounter,
                                                "Records that it was asked to keep, and did not."};
inline constexpr MetricFamily kDirectoryIgnored{"fedge_directory_ignored_records_total", MetricType::kCounter,
                                                "Records that it was given and ignored, by what was wrong.",
                                                "flaw"};

inline constexpr std::array kDirectoryFamilies = {kDirectoryNodes,    kDirectoryRecords, kDirectoryBytes,
                                                  kDirectoryMessages, kDirectoryRefused, kDirectoryIgnored};

void add_directory(Exposition& page, const DirectoryFigures& figures);

}  // namespace fedge::server
