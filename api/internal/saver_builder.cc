#include "api/internal/saver_builder.h"

#include <map>
#include <utility>

#include "api/ops.h"
#include "devices/device_name.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

using Saveables = std::vector<const Saveable*>;

/// The processor of the task that `device` is of.
std::string CpuOf(const std::string& device) {
  DeviceName name = *DeviceName::Parse(device);  // Canonical: it can be parsed.
  name.type = "CPU";
  name.index = 0;
  return name.ToString();
}

/// Where a file of the V1 format is written for a device: there, if it is a processor.
std::string WriterOf(const std::string& device) {
  const DeviceName name = *DeviceName::Parse(device);
  return name.type.value_or("CPU") == "CPU" ? device : CpuOf(device);
}

Output Strings(const Scope& scope, const std::string& name,
               const std::vector<std::string>& strings) {
  return Const(scope.WithOpName(name), Tensor::Vector<std::string>(strings));
}

/// Elements of a saveable in bytes; 0 if the shapes are not known.
int64_t BytesOf(const Saveable& saveable) {
  int64_t bytes = 0;
  for (const SavedTensor& tensor : saveable.tensors()) {
    const absl::StatusOr<Shape> shape = tensor.shape.ToShape();
    if (!shape.ok()) return 0;
    bytes += shape->num_elements() * static_cast<int64_t>(ElementSize(tensor.type));
  }
  return bytes;
}

class Builder {
 public:
  Builder(const Scope& scope, const SaverGraphOptions& options)
      : scope_(scope), options_(options) {}

  SaverGraph Build(const std::vector<Saveable>& saveables) {
    const Output input =
        Const(scope_.WithOpName("filename/input"), Tensor::Scalar<std::string>(options_.filename));
    const PartialShape scalar({});
    graph_.filename = ops::PlaceholderWithDefault(
        scope_.WithOpName("Const"),
        ops::PlaceholderWithDefault(scope_.WithOpName("filename"), input, scalar), scalar);
    if (!scope_.ok()) return graph_;
    if (options_.sharded) {
      std::map<std::string, Saveables> shards;  // By device.
      for (const Saveable& saveable : saveables) shards[saveable.device()].push_back(&saveable);
      graph_.save = options_.v1 ? SaveShardsV1(shards) : SaveShardsV2(shards);
      graph_.restore = RestoreShards(shards);
    } else {
      Saveables all;
      for (const Saveable& saveable : saveables) all.push_back(&saveable);
      graph_.save = Save(scope_, graph_.filename, all, /*shard=*/0);
      graph_.restore = Restore(scope_, all, "restore_all");
    }
    if (options_.asynchronous) {
      graph_.held = ops::Identity(
          scope_.WithOpName(kHeldName).WithControlDependencies(absl::MakeConstSpan(reads_)),
          graph_.filename);
    }
    return graph_;
  }

 private:
  static std::string Numbered(const std::string& name, int number) {
    return number == 0 ? name : StrCat(name, "_", number);
  }

  std::vector<Output> ReadAll(const Scope& scope, const Saveables& saveables) {
    std::vector<Output> tensors;
    for (const Saveable* saveable : saveables) {
      const std::string& device = saveable->device();
      const Scope there = device.empty() ? scope : scope.WithDevice(device);
      for (Output tensor : saveable->AddRead(there)) {
        // A reference is read by who takes it, and that may be later.
        if (options_.asynchronous && tensor.valid() &&
            IsRefType(tensor.node->output_type(tensor.index))) {
          tensor = ops::Identity(there, tensor);
        }
        if (tensor.valid()) reads_.push_back(tensor.node);
        tensors.push_back(tensor);
      }
    }
    return tensors;
  }

  /// Saves as `filename`; gives the name once it has been done.
  Output Save(const Scope& scope, const Output& filename, const Saveables& saveables, int shard) {
    std::vector<std::string> names, slices;
    for (const Saveable* saveable : saveables) {
      for (const SavedTensor& tensor : saveable->tensors()) {
        names.push_back(tensor.name);
        slices.push_back(tensor.shape_and_slice);
      }
    }
    const std::string op = Numbered(options_.v1 ? "save" : "SaveV2", shard);
    const Output tensor_names = Strings(scope, op + "/tensor_names", names);
    const Output tensor_slices =
        Strings(scope, op + (options_.v1 ? "/shapes_and_slices" : "/shape_and_slices"), slices);
    const std::vector<Output> tensors = ReadAll(scope, saveables);
    const Scope own = scope.WithOpName(op);
    Node* const save = options_.v1
                           ? ops::SaveSlices(own, filename, tensor_names, tensor_slices, tensors)
                           : ops::SaveV2(own, filename, tensor_names, tensor_slices, tensors);
    return ops::Identity(scope.WithOpName(Numbered("control_dependency", shard))
                             .ColocateWith(filename.node)
                             .WithControlDependencies({Output(save)}),
                         filename);
  }

  /// Each device's shard goes aside; then one checkpoint is made of them.
  Output SaveShardsV2(const std::map<std::string, Saveables>& shards) {
    const Scope cpu = scope_.WithDevice("/device:CPU:*");
    const Output object_store =
        ops::StaticRegexFullMatch(cpu, graph_.filename, /*pattern=*/"^s3://.*");
    const Output part = Const(cpu.WithOpName("Const_1"), Tensor::Scalar<std::string>(".part"));
    const Output temporary =
        Const(cpu.WithOpName("Const_2"), Tensor::Scalar<std::string>("_temp/part"));
    const Output aside =
        ops::StringJoin(cpu, {graph_.filename, ops::Select(cpu, object_store, part, temporary)});
    const Output count =
        Const(scope_.WithOpName("num_shards"), static_cast<int32_t>(shards.size()));
    std::vector<Output> prefixes;
    std::vector<Node*> saves;
    int shard = 0;
    std::string last;
    for (const auto& [device, saveables] : shards) {
      last = CpuOf(device);
      const Scope there = scope_.WithDevice(last);
      prefixes.push_back(ShardName(there, aside, shard, count));
      saves.push_back(Save(there, prefixes.back(), saveables, shard).node);
      ++shard;
    }
    const Scope after = scope_.WithDevice(last).WithControlDependencies(absl::MakeConstSpan(saves));
    const Output all =
        ops::Pack(after.WithOpName("MergeV2Checkpoints/checkpoint_prefixes"), prefixes);
    Node* const merge =
        ops::MergeV2Checkpoints(scope_.WithDevice(last).WithOpName("MergeV2Checkpoints"), all,
                                graph_.filename, {.delete_old_dirs = true});
    return ops::Identity(after.WithControlDependencies({Output(merge)}), graph_.filename);
  }

  /// Each device has a file.
  Output SaveShardsV1(const std::map<std::string, Saveables>& shards) {
    const Output count =
        Const(scope_.WithOpName("num_shards"), static_cast<int32_t>(shards.size()));
    std::vector<Node*> saves;
    int shard = 0;
    for (const auto& [device, saveables] : shards) {
      const std::string writer = WriterOf(device);
      const Scope there = writer.empty() ? scope_ : scope_.WithDevice(writer);
      saves.push_back(
          Save(there, ShardName(there, graph_.filename, shard, count), saveables, shard).node);
      ++shard;
    }
    return ops::ShardedFilespec(scope_.WithControlDependencies(absl::MakeConstSpan(saves)),
                                graph_.filename, count);
  }

  static Output ShardName(const Scope& scope, const Output& base, int shard, const Output& count) {
    const std::string name = Numbered("ShardedFilename", shard);
    return ops::ShardedFilename(scope.WithOpName(name), base,
                                Const(scope.WithOpName(name + "/shard"), int32_t{shard}), count);
  }

  Node* RestoreShards(const std::map<std::string, Saveables>& shards) {
    std::vector<Node*> restores;
    for (const auto& [device, saveables] : shards) {
      const Scope there = device.empty() ? scope_ : scope_.WithDevice(device);
      const int shard = static_cast<int>(restores.size());
      restores.push_back(Restore(there, saveables, Numbered("restore_shard", shard)));
    }
    return Group(scope_, restores, "restore_all");
  }

  Node* Restore(const Scope& scope, const Saveables& saveables, const std::string& name) {
    std::vector<Node*> all, before;
    Saveables some;
    int64_t bytes = 0;
    for (size_t i = 0; i < saveables.size(); ++i) {
      some.push_back(saveables[i]);
      bytes += BytesOf(*saveables[i]);
      const bool full =
          options_.restore_sequentially || bytes >= kRestoreBytes ||
          (i + 1 < saveables.size() && bytes + BytesOf(*saveables[i + 1]) > kRestoreBytes);
      if (!full && i + 1 < saveables.size()) continue;
      before = RestoreSome(scope.WithControlDependencies(absl::MakeConstSpan(before)), some);
      all.insert(all.end(), before.begin(), before.end());
      some.clear();
      bytes = 0;
    }
    return Group(scope, all, name);
  }

  /// Reads tensors, then sets what they are of; the nodes that do so.
  std::vector<Node*> RestoreSome(const Scope& scope, const Saveables& saveables) {
    std::vector<std::string> names, slices;
    std::vector<ElementType> types;
    for (const Saveable* saveable : saveables) {
      for (const SavedTensor& tensor : saveable->tensors()) {
        names.push_back(tensor.name);
        slices.push_back(tensor.shape_and_slice);
        types.push_back(tensor.type);
      }
    }
    const std::string op = Numbered("RestoreV2", restores_++);
    const Scope cpu = scope.WithDevice("/device:CPU:0"), free = cpu.WithNoControlDependencies();
    const Output tensor_names = Strings(free, op + "/tensor_names", names);
    const Output tensor_slices = Strings(free, op + "/shape_and_slices", slices);
    const std::vector<Output> tensors =
        ops::RestoreV2(cpu.WithOpName(op), graph_.filename, tensor_names, tensor_slices, types);
    std::vector<Node*> nodes;
    size_t next = 0;
    for (const Saveable* saveable : saveables) {
      std::vector<Output> own;
      for (const SavedTensor& tensor : saveable->tensors()) {
        own.push_back(options_.reshape ? Reshaped(scope, *saveable, tensor, tensors[next])
                                       : tensors[next]);
        ++next;
      }
      if (!scope.ok()) return {};
      nodes.push_back(saveable->AddRestore(scope.WithNoControlDependencies(), own));
    }
    return nodes;
  }

  /// The tensor in the shape that its variable has.
  static Output Reshaped(const Scope& scope, const Saveable& saveable, const SavedTensor& to,
                         const Output& tensor) {
    const absl::StatusOr<Shape> shape = to.shape.ToShape();
    if (shape.ok()) {
      const auto dims = shape->dims();
      return ops::Reshape(scope, tensor,
                          Tensor::Vector<int64_t>(std::vector<int64_t>(dims.begin(), dims.end())));
    }
    const size_t index = static_cast<size_t>(&to - saveable.tensors().data());
    const std::vector<Output> now = saveable.AddRead(scope);
    if (index >= now.size()) return tensor;  // The scope has the error.
    return ops::Reshape(scope, tensor, ops::Shape(scope, now[index], {ElementType::kInt64}));
  }

  /// A node that waits for others: device by device, so that few edges lead from one to another.
  static Node* Group(const Scope& scope, const std::vector<Node*>& nodes, const std::string& name) {
    std::map<std::string, std::vector<Node*>> devices;
    for (Node* node : nodes) {
      if (node == nullptr) return nullptr;
      devices[node->requested_device()].push_back(node);
    }
    const auto wait = [&](const std::string& device, const std::vector<Node*>& for_these,
                          const std::string& called) {
      const Scope there = scope.WithOpName(called).WithDevice(device);
      return ops::NoOp(there.WithControlDependencies(absl::MakeConstSpan(for_these)));
    };
    if (devices.size() == 1) return wait(devices.begin()->first, nodes, name);
    std::vector<Node*> parts;
    for (const auto& [device, own] : devices) {
      parts.push_back(wait(device, own, Numbered(name + "/NoOp", static_cast<int>(parts.size()))));
    }
    return wait("", parts, name);
  }

  const Scope scope_;
  const SaverGraphOptions options_;
  SaverGraph graph_;
  std::vector<Node*> reads_;
  int restores_ = 0;
};

}  // namespace

SaverGraph BuildSaver(const Scope& scope, const std::vector<Saveable>& saveables,
                      const SaverGraphOptions& options) {
  return Builder(scope, options).Build(saveables);
}

}  // namespace troupe
