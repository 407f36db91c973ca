# A room is a top-level folder: one library target fedge_<room> with its own link line. What a room
# does not link it cannot use; tests/tidy checks the includes as well.
#   fedge_room(learn PUBLIC fedge_core PRIVATE ZLIB::ZLIB)
# EXCEPT names sources that belong to another target.
function(fedge_room name)
  cmake_parse_arguments(ROOM "" "" "PUBLIC;PRIVATE;EXCEPT" ${ARGN})
  file(GLOB_RECURSE sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(ROOM_EXCEPT)
    list(REMOVE_ITEM sources ${ROOM_EXCEPT})
  endif()
  add_library(fedge_${name} STATIC ${sources})
  target_include_directories(fedge_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(fedge_${name} PUBLIC ${ROOM_PUBLIC} PRIVATE ${ROOM_PRIVATE})
  fedge_warnings(fedge_${name})
  fedge_unity(fedge_${name})
endfunction()

# Compiles a target's sources in batches, each as one unit, if FEDGE_UNITY is on: what they include is then read, and
# what they instantiate made, once a batch. So names in unnamed namespaces must differ within a target (tests/tidy
# checks it), and each source must still compile by itself (tests/single_files.py checks that). CMake leaves sources
# with compile options of their own, and generated ones, by themselves.
#   fedge_unity(TARGET [SOURCES])     at most so many a batch, 8 unless said
function(fedge_unity target)
  if(NOT FEDGE_UNITY)
    return()
  endif()
  set(most 8)
  if(ARGC GREATER 1)
    set(most ${ARGV1})
  endif()
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  math(EXPR batches "(${count} + ${most} - 1) / ${most}")  # of about equal size
  math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# As many units at once as there are processors, and memory for: the largest take 1.3 GiB. Ninja's own choice, two
# more, takes a fifteenth more processor time. Where there is memory for all, g++ collects its garbage less often, which
# takes a twelfth off.
if(NOT DEFINED CMAKE_JOB_POOL_COMPILE)
  cmake_host_system_information(RESULT jobs QUERY NUMBER_OF_LOGICAL_CORES)
  cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)  # in MiB
  math(EXPR room "${memory} / 1536")
  if(room LESS jobs)
    set(jobs ${room})
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=500000>)
  endif()
  if(jobs LESS 1)
    set(jobs 1)
  endif()
  set_property(GLOBAL APPEND PROPERTY JOB_POOLS fedge_compile=${jobs})
  set(CMAKE_JOB_POOL_COMPILE fedge_compile)
endif()

# Optimises a room that computes in debug builds as well, for the speed of its tests.
function(fedge_optimised_always target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O2>)
endfunction()

# Optimises what waits for sockets and disks (-O1), or for people (-Og), less in a release: that takes two thirds of the
# time that -O3 takes to compile it, or half.
function(fedge_little_optimised target level)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>)
endfunction()

function(fedge_warnings target)
  # Two that g++ 12 gives wrongly: restrict on "x" + std::string at -O3, maybe-uninitialized on
  # moves of a std::variant.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
                         -Wnon-virtual-dtor -Wold-style-cast
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                         # A type of an unnamed namespace in a class of a source: a batch is all in one unit.
                         $<$<AND:$<BOOL:${FEDGE_UNITY}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>
                         # Designated initialisers name what differs from the defaults.
                         -Wno-missing-field-initializers)
  if(FEDGE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
