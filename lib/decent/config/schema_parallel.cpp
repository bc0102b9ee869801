// The keys of section `parallel`.

#include "decent/config/option_keys.h"
#include "decent/config/schema.h"

namespace decent::config {
namespace {

using enum OnResume;

std::vector<std::string> exchange_names(const Names& names) { return names_in(names.exchanges); }
std::vector<std::string> method_names(const Names& names) { return names_in(names.methods); }

}  // namespace

Table<ParallelRecipe> make_parallel_table() {
  using R = ParallelRecipe;
  Table<R> table;
  table.key("method", &R::method)
      .one_of(method_names)
      .on_resume(tell)
      .doc(
          "`gossip`: workers average weights with neighbours; `all_reduce`: they average gradients "
          "with all others in every step, as PyTorch's DistributedDataParallel; `none`: each "
          "trains alone.");
  table.key("topology", &R::topology)
      .one_of(&Names::topologies)
      .on_resume(silent)  // the phases are compared instead
      .doc(
          "Who averages with whom: a name or `{phases: [[{ranks: [0, 1], weight: 0.5}, ..], "
          "..]}`.");
  table.key("topology_otherwise", &R::topology_otherwise)
      .one_of(&Names::topologies)
      .on_resume(silent)  // as for topology
      .doc("The topology of a resumed run while `topology` does not fit its number of workers.");
  table.key("local_world_size", &R::local_world_size)
      .range(at_least(1))
      .may_differ()
      .on_resume(silent)
      .doc("Workers per node for alternating-exp-ring; null: `LOCAL_WORLD_SIZE`.");
  table.key("bucket_mb", &R::bucket_mb)
      .range(above(0))
      .shapes_exchange()
      .doc(
          "Size of the buckets that are exchanged, in MiB; may be a fraction. With `all_reduce` "
          "the default is 4, so that sending begins early in backward.");
  table.key("gamma", &R::gamma)
      .range(within(0, 1))
      .shapes_exchange()
      .of_averaging()
      .doc("Mixing strength: 0 keeps a worker's own weights, 1 takes the average.");
  table.key("grad_clip_norm", &R::grad_clip_norm)
      .range(at_least(0))
      .doc("Clip gradients to this norm; 0 turns clipping off.");
  table.key("grad_clip_scope", &R::grad_clip_scope)
      .doc("One norm over all parameters, or one per bucket.");
  table.key("update", &R::update)
      .doc(
          "When a bucket is updated; `auto`: inside backward unless the whole gradient is needed.");
  table.key("average_buffers", &R::average_buffers)
      .doc("Include floating-point buffers in the global average.");
  table.key("comm_dtype", &R::comm_dtype)
      .one_of(exchange_names)
      .shapes_exchange()
      .doc(
          "How weights are sent: as they are (fp32), rounded (bf16), or as the last 2 or 4 bits of "
          "their place on a grid that follows the learning rate (modulo2, modulo4).");
  table.key("comm_dtype_within", &R::comm_dtype_within)
      .one_of(exchange_names)
      .shapes_exchange()
      .of_averaging()
      .doc(
          "The comm_dtype for edges whose members are all on one machine, with `gossip`; null: the "
          "same as for other edges.");
  table.key("slices", &R::slices)
      .range(within(1, 65536))  // so that products with sizes of buckets fit 64 bits
      .shapes_exchange()
      .of_averaging()
      .doc(
          "Number of parts that each bucket is cut into; each step exchanges one of them, in "
          "turn.");
  add_rows(table, &Names::exchanges, &R::exchange_options,
           {.shapes_exchange = true, .of_averaging = true});
  table.key("link_mbit", &R::link_mbit)
      .range(above(0))
      .may_differ()
      .on_resume(silent)
      .doc(
          "Speed of a worker's link in Mbit/s. A run and `--dry-run` use it only to say how long "
          "sending takes.");
  table.key("backend", &R::backend)
      .may_differ()
      .on_resume(silent)
      .doc(
          "What carries weights between workers; `auto`: nccl between GPUs, except "
          "between machines without RDMA; on the CPU shared memory between workers of one machine "
          "and gloo between machines.");
  table.key("timeout_s", &R::timeout_s)
      .range(above(0))
      .may_differ()
      .on_resume(silent)
      .doc("End the run after a peer has been silent for this many seconds.");
  table.key("stall_s", &R::stall_s)
      .range(above(0))
      .may_differ()
      .on_resume(silent)
      .doc(
          "End the run when a worker has stayed in one operation of training for this many "
          "seconds; null: never.");
  table.key("farewell_s", &R::farewell_s)
      .range(at_least(0))
      .may_differ()
      .on_resume(silent)
      .doc(
          "When a worker is lost, the others finish their step and save it within this many "
          "seconds, "
          "so that no step is lost; 0: they end at once.");
  return table;
}

}  // namespace decent::config
