// libsodium picks what this processor can do once it is told to: before anything of it is used. Private to
// core/crypto/.
#pragma once

namespace fedge {

void need_sodium();

}  // namespace fedge
