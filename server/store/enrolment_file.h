// Where the enrolment book lies, and how one is made. Enrolment is how it is used.
#pragma once

#include <filesystem>

#include "core/result.h"
#include "server/access/enrolment_book.h"

namespace fedge::server {

// enrolment.db of the data directory.
std::filesystem::path enrolment_path(const std::filesystem::path& data_directory);

// Makes a book with this content, whole or not at all, where there is none: of a new data directory, of an
// older version's, and of a bench's. kRefused: the data directory's files belong to another user.
Result<void> create_enrolment_book(const std::filesystem::path& data_directory, const EnrolmentBook& book);

}  // namespace fedge::server
