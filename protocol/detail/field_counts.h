// How often a message may contain each of its repeated fields; checked before parsing. Private to
// protocol/: it names generated types.
#pragma once

#include <array>

#include "core/energy/power.h"
#include "proto/fedge.pb.h"
#include "protocol/limits.h"
#include "protocol/wire_lengths.h"

namespace fedge::protocol {

template <class Wire>
inline constexpr auto kFieldCounts = std::array<FieldCount, 0>{};

template <>
inline constexpr auto kFieldCounts<v1::Hello> =
    std::array{FieldCount{v1::Hello::kFeaturesFieldNumber, kMaxFeatures, "features"}};

template <>
inline constexpr auto kFieldCounts<v1::Welcome> =
    std::array{FieldCount{v1::Welcome::kFeaturesFieldNumber, kMaxFeatures, "features"},
               FieldCount{v1::Welcome::kRunsFieldNumber, kMaxRunsInProgress, "runs", Packing::kFixed64}};

template <>
inline constexpr auto kFieldCounts<v1::Contact> =
    std::array{FieldCount{v1::Contact::kAddressesFieldNumber, kMaxCoordinatorAddresses, "addresses"}};

template <>
inline constexpr auto kFieldCounts<v1::RunAnswer> =
    std::array{FieldCount{v1::RunAnswer::kHertzFieldNumber, kMaxFrequencies, "hertz", Packing::kFixed64},
               FieldCount{v1::RunAnswer::kVoltsFieldNumber, kMaxFrequencies, "volts", Packing::kFixed64}};

template <>
inline constexpr auto kFieldCounts<v1::TrainRequest> = std::array{
    FieldCount{v1::TrainRequest::kLiveTracksFieldNumber, kMaxLiveTracks, "live_tracks", Packing::kVarints},
    FieldCount{v1::TrainRequest::kStatisticsFieldNumber, kMaxTaskSums, "statistics", Packing::kFixed32}};

template <>
inline constexpr auto kFieldCounts<v1::UpdateOffer> =
    std::array{FieldCount{v1::UpdateOffer::kMaskedScalarsFieldNumber, kMaxSecureScalars, "masked_scalars",
                          Packing::kFixed64},
               FieldCount{v1::UpdateOffer::kSumsFieldNumber, kMaxTaskSums, "sums", Packing::kVarints}};

template <>
inline constexpr auto kFieldCounts<v1::SwarmMembers> =
    std::array{FieldCount{v1::SwarmMembers::kJoinFieldNumber, kMaxSwarmMembers, "join"},
               FieldCount{v1::SwarmMembers::kLeaveFieldNumber, kMaxSwarmMembers, "leave", Packing::kVarints}};

template <>
inline constexpr auto kFieldCounts<v1::ChunksAdded> = std::array{
    FieldCount{v1::ChunksAdded::kChunksFieldNumber, kMaxOutstandingChunks, "chunks", Packing::kVarints}};

template <>
inline constexpr auto kFieldCounts<v1::AggregateUpdates> =
    std::array{FieldCount{v1::AggregateUpdates::kPartsFieldNumber, kMaxAggregated, "parts"}};

template <>
inline constexpr auto kFieldCounts<v1::WarmupPlan> =
    std::array{FieldCount{v1::WarmupPlan::kNeighboursFieldNumber, kMaxSwarmMembers, "neighbours"}};

template <>
inline constexpr auto kFieldCounts<v1::WarmupSlot> =
    std::array{FieldCount{v1::WarmupSlot::kAsksFieldNumber, kMaxWarmupOrders, "asks"},
               FieldCount{v1::WarmupSlot::kSpraysFieldNumber, kMaxWarmupOrders, "sprays"}};

template <>
inline constexpr auto kFieldCounts<v1::SplitValues> = std::array{
    FieldCount{v1::SplitValues::kSentFieldNumber, kMaxSplitTokens, "sent", Packing::kVarints},
    FieldCount{v1::SplitValues::kTargetsFieldNumber, kMaxSplitTokens, "targets", Packing::kVarints},
    FieldCount{v1::SplitValues::kSamplesFieldNumber, kMaxSplitTokens, "samples", Packing::kVarints},
    FieldCount{v1::SplitValues::kLossesFieldNumber, kMaxSplitTokens, "losses", Packing::kFixed64}};

template <>
inline constexpr auto kFieldCounts<v1::SecureRoster> = std::array{
    FieldCount{v1::SecureRoster::kCellsFieldNumber, 2 * kMaxSecureCells, "cells", Packing::kVarints},
    FieldCount{v1::SecureRoster::kCoveragesFieldNumber, kMaxSecureCoverages, "coverages"},
    FieldCount{v1::SecureRoster::kCoverageOfFieldNumber, kMaxSecureMembers, "coverage_of", Packing::kVarints},
    FieldCount{v1::SecureRoster::kPeersFieldNumber, kMaxSecurePeers, "peers"}};

template <>
inline constexpr auto kFieldCounts<v1::SecureShares> =
    std::array{FieldCount{v1::SecureShares::kToFieldNumber, kMaxSecurePeers, "to", Packing::kVarints}};

template <>
inline constexpr auto kFieldCounts<v1::SecurePeerShares> = std::array{
    FieldCount{v1::SecurePeerShares::kFromFieldNumber, kMaxSecurePeers, "from", Packing::kVarints}};

template <>
inline constexpr auto kFieldCounts<v1::SecureSurvivors> = std::array{
    FieldCount{v1::SecureSurvivors::kNumbersFieldNumber, kMaxSecureMembers, "numbers", Packing::kVarints}};

template <>
inline constexpr auto kFieldCounts<v1::SecureConsents> = std::array{
    FieldCount{v1::SecureConsents::kNumbersFieldNumber, kMaxSecurePeers, "numbers", Packing::kVarints}};

template <>
inline constexpr auto kFieldCounts<v1::SecureUnmask> = std::array{
    FieldCount{v1::SecureUnmask::kSurvivorsFieldNumber, kMaxSecurePeers, "survivors", Packing::kVarints},
    FieldCount{v1::SecureUnmask::kDroppedFieldNumber, kMaxSecurePeers, "dropped", Packing::kVarints}};

}  // namespace fedge::protocol
