/// Lookup tables: TensorFlow 1.x's `tf.lookup`.
///
///     StaticHashTable ids(s, TextFileInitializer("words.txt", ElementType::kString,
///                                                TextFileInitializer::kWholeLine,
///                                                ElementType::kInt64,
///                                                TextFileInitializer::kLineNumber),
///                         int64_t{-1});
///     Output found = ids.Lookup(s, words);
///     Node* initialize = TablesInitializer(s);   // To be run once in each session.
#ifndef TROUPE_API_LOOKUP_H_
#define TROUPE_API_LOOKUP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "api/scope.h"
#include "api/training/saveable.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

namespace collections {
inline constexpr char kTableInitializers[] = "table_initializer";
inline constexpr char kSaveableObjects[] = "saveable_objects";
}  // namespace collections

/// Where the contents of a static table come from. A value; what it refers to is of one graph.
class TableInitializer {
 public:
  ElementType key_type() const { return key_type_; }
  ElementType value_type() const { return value_type_; }
  /// Adds the node that initialises `table`.
  Node* AddTo(const Scope& scope, const Output& table) const { return add_(scope, table); }

 protected:
  using Add = std::function<Node*(const Scope& scope, const Output& table)>;
  TableInitializer(ElementType key_type, ElementType value_type, Add add)
      : key_type_(key_type), value_type_(value_type), add_(std::move(add)) {}

 private:
  ElementType key_type_, value_type_;
  Add add_;
};

/// Two vectors of one size: keys, and their values.
class KeyValueTensorInitializer : public TableInitializer {
 public:
  KeyValueTensorInitializer(const Input& keys, const Input& values);
};

/// The lines of a text file. A line that is empty, has too few columns or a field that is no number
/// of the type fails the step that initialises (InvalidArgument, with file and line); so does a key
/// that comes twice, with different values (FailedPrecondition).
class TextFileInitializer : public TableInitializer {
 public:
  /// In place of a column's index.
  static constexpr int64_t kWholeLine = -2, kLineNumber = -1;
  struct Options {
    int64_t vocab_size = -1;  ///< Lines that are read, which must be there; -1: all.
    std::string delimiter = "\t";
    int64_t value_index_offset = 0;  ///< The first line's number.
  };

  TextFileInitializer(const Input& filename, ElementType key_type, int64_t key_index,
                      ElementType value_type, int64_t value_index, Options options);
  TextFileInitializer(const Input& filename, ElementType key_type, int64_t key_index,
                      ElementType value_type, int64_t value_index)
      : TextFileInitializer(filename, key_type, key_index, value_type, value_index, Options()) {}
};

/// A table, by its handle: what all kinds have in common. Refers to nodes of a graph; copies refer
/// to the same table. Its contents last as long as its container, or as the session for a table
/// that has no name; each device of a cluster has its own.
class TableBase {
 public:
  bool valid() const { return handle_.valid(); }
  Output handle() const { return handle_; }
  ElementType key_type() const { return key_type_; }
  ElementType value_type() const { return value_type_; }

  /// The value of each key, or the default: [keys..., value...].
  Output Lookup(const Scope& scope, const Input& keys) const;
  /// The number of keys, an int64.
  Output Size(const Scope& scope) const;
  /// All keys and their values, in any order.
  std::pair<Output, Output> Export(const Scope& scope) const;
  /// What `Lookup` gives for keys that are not there.
  Output default_value() const { return default_value_; }

 protected:
  TableBase() = default;

  ElementType key_type_ = ElementType::kInvalid, value_type_ = ElementType::kInvalid;
  Output handle_, default_value_;
};

/// A table that is initialised once in each session and read from then on, by any number of steps
/// at a time. Before that, looking up is FailedPrecondition.
class StaticHashTable : public TableBase {
 public:
  struct Options {
    std::string name = "hash_table";
    /// Sessions of one server share tables of one name; "": each session has its own.
    std::string shared_name;
  };

  StaticHashTable() = default;
  /// The initializer goes to the collection "table_initializer".
  StaticHashTable(const Scope& scope, const TableInitializer& initializer,
                  const Input& default_value, Options options);
  StaticHashTable(const Scope& scope, const TableInitializer& initializer,
                  const Input& default_value)
      : StaticHashTable(scope, initializer, default_value, Options()) {}

  /// The node that initialises the table. Once more with the same contents does no harm.
  Node* initializer() const { return initializer_; }

 private:
  Node* initializer_ = nullptr;
};

/// Strings to ids: those of a table, and for other strings one of `num_oov_buckets` ids after them,
/// chosen by the string's fingerprint (TensorFlow's `IdTableWithHashBuckets`).
class IdTableWithHashBuckets {
 public:
  IdTableWithHashBuckets() = default;
  /// `table`, whose default value stands for "not there", maps strings to int64. Without a table
  /// all ids are of buckets. InvalidArgument (in the scope) for other tables, and without buckets
  /// and table.
  IdTableWithHashBuckets(const Scope& scope, StaticHashTable table, int64_t num_oov_buckets);

  /// An int64 for each string.
  Output Lookup(const Scope& scope, const Input& keys) const;
  /// The number of ids, with those of buckets.
  Output Size(const Scope& scope) const;
  const StaticHashTable& table() const { return table_; }
  /// nullptr: there is no table.
  Node* initializer() const { return table_.initializer(); }

 private:
  StaticHashTable table_;
  int64_t num_oov_buckets_ = 0;
};

/// How `IndexTableFromFile` and its like read a vocabulary. A value.
struct IndexTableOptions {
  int64_t num_oov_buckets = 0;
  int64_t default_value = -1;  ///< Of strings without an id, where there are no buckets.
  int64_t vocab_size = -1;     ///< Of files: lines that are read; -1: all.
  int64_t key_column_index = TextFileInitializer::kWholeLine;
  int64_t value_column_index = TextFileInitializer::kLineNumber;
  std::string delimiter = "\t";
  std::string name;  ///< "": "string_to_index".
};
/// Ids of the strings in a file, one a line.
IdTableWithHashBuckets IndexTableFromFile(const Scope& scope, const Input& vocabulary_file,
                                          const IndexTableOptions& options = {});
/// Ids of the strings in a vector: their indices.
IdTableWithHashBuckets IndexTableFromTensor(const Scope& scope, const Tensor& vocabulary,
                                            const IndexTableOptions& options = {});
/// The other way round: strings by their line or index.
StaticHashTable IndexToStringTableFromFile(const Scope& scope, const Input& vocabulary_file,
                                           const std::string& default_value = "UNK",
                                           int64_t vocab_size = -1);
StaticHashTable IndexToStringTableFromTensor(const Scope& scope, const Tensor& vocabulary,
                                             const std::string& default_value = "UNK");

/// A table whose keys come and go.
class MutableTableBase : public TableBase {
 public:
  /// Keys of any shape, with values [keys..., value...]. Of a key that comes several times the last
  /// value counts.
  Node* Insert(const Scope& scope, const Input& keys, const Input& values) const;
  /// Keys that are not there do no harm.
  Node* Remove(const Scope& scope, const Input& keys) const;
  /// Replaces what the table holds.
  Node* Import(const Scope& scope, const Input& keys, const Input& values) const;
  /// For a `Saver`: two tensors, "NAME-keys" and "NAME-values", NAME being the node's, as
  /// TensorFlow has them.
  Saveable saveable() const;

  /// The tables of the collection "saveable_objects".
  static absl::StatusOr<std::vector<Saveable>> SaveablesOf(const Graph& graph);

 protected:
  /// Adds a table that is part of checkpoints to that collection.
  void AddToSaveables(const Scope& scope, bool checkpoint) const;
};

/// How a table that changes is made. A value.
struct MutableTableOptions {
  std::string name;         ///< "": that of the class.
  std::string shared_name;  ///< As for static tables.
  /// Part of checkpoints (collection "saveable_objects"), where it is found by its node's name, by
  /// which sessions share it unless there is a `shared_name`.
  bool checkpoint = true;
};

/// A table in memory of its own. Values are scalars, or vectors if the default value is one.
class MutableHashTable : public MutableTableBase {
 public:
  MutableHashTable() = default;
  MutableHashTable(const Scope& scope, ElementType key_type, ElementType value_type,
                   const Tensor& default_value, const MutableTableOptions& options = {});
};

/// The same with keys and values in tensors: fewer bytes, and faster to save. `empty_key` and
/// `deleted_key` mark what is not used, and cannot be keys (InvalidArgument). Keys and values are
/// scalars or vectors.
class DenseHashTable : public MutableTableBase {
 public:
  DenseHashTable() = default;
  DenseHashTable(const Scope& scope, ElementType key_type, ElementType value_type,
                 const Tensor& default_value, const Input& empty_key, const Input& deleted_key,
                 const MutableTableOptions& options = {}, int64_t initial_num_buckets = 131072);
};

/// A node that runs the initializers of the graph's collection "table_initializer".
Node* TablesInitializer(const Scope& scope, const std::string& name = "init_all_tables");

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_LOOKUP_H_
