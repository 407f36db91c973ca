// Initialises libsodium, which then selects code for this processor. Call it before any use of libsodium.
// Private to core/crypto/.
#pragma once

namespace fedge {

void need_sodium();

}  // namespace fedge
