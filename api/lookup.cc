#include "api/lookup.h"

#include <numeric>

#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

ElementType TypeOf(const Input& input) {
  return input.is_value() ? input.value().type() : input.output().type();
}

/// 0, 1, ... `count` - 1.
Tensor Range(int64_t count) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return Tensor::Vector<int64_t>(absl::MakeConstSpan(values));
}

bool CheckVocabulary(const Scope& scope, const Tensor& vocabulary) {
  if (vocabulary.type() == ElementType::kString && vocabulary.rank() == 1) return true;
  scope.UpdateStatus(InvalidArgument("a vocabulary must be a vector of strings, got ",
                                     ElementTypeName(vocabulary.type()), " ",
                                     vocabulary.shape().ToString()));
  return false;
}

}  // namespace

KeyValueTensorInitializer::KeyValueTensorInitializer(const Input& keys, const Input& values)
    : TableInitializer(TypeOf(keys), TypeOf(values),
                       [keys, values](const Scope& scope, const Output& table) {
                         return ops::InitializeTableV2(scope, table, keys, values);
                       }) {}

TextFileInitializer::TextFileInitializer(const Input& filename, ElementType key_type,
                                         int64_t key_index, ElementType value_type,
                                         int64_t value_index, Options options)
    : TableInitializer(key_type, value_type, [=](const Scope& scope, const Output& table) {
        return ops::InitializeTableFromTextFileV2(scope, table, filename, key_index, value_index,
                                                  {.vocab_size = options.vocab_size,
                                                   .delimiter = options.delimiter,
                                                   .offset = options.value_index_offset});
      }) {}

// --- what all tables have in common --------------------------------------------------------------

Output TableBase::Lookup(const Scope& scope, const Input& keys) const {
  return ops::LookupTableFindV2(scope, handle_, keys, default_value_);
}

Output TableBase::Size(const Scope& scope) const { return ops::LookupTableSizeV2(scope, handle_); }

std::pair<Output, Output> TableBase::Export(const Scope& scope) const {
  const auto exported = ops::LookupTableExportV2(scope, handle_, key_type_, value_type_);
  return {exported.keys, exported.values};
}

// --- tables that are initialised -----------------------------------------------------------------

StaticHashTable::StaticHashTable(const Scope& scope, const TableInitializer& initializer,
                                 const Input& default_value, Options options) {
  key_type_ = initializer.key_type();
  value_type_ = initializer.value_type();
  const Scope inner = scope.NewSubScope(options.name);
  handle_ = ops::HashTableV2(inner.WithOpName("hash_table"), key_type_, value_type_,
                             {.container = scope.container(), .shared_name = options.shared_name});
  default_value_ = default_value.ToOutput(inner.WithOpName("default_value"));
  initializer_ = initializer.AddTo(inner.WithOpName("table_init"), handle_);
  if (!scope.ok() || initializer_ == nullptr) return;
  scope.graph()->AddToCollection(collections::kTableInitializers, initializer_->name());
}

Node* TablesInitializer(const Scope& scope, const std::string& name) {
  std::vector<Node*> initializers;
  for (const std::string& node : scope.graph()->Collection(collections::kTableInitializers)) {
    Node* const found = scope.graph()->FindNode(node);
    if (found == nullptr) {
      scope.UpdateStatus(
          absl::NotFoundError(StrCat("collection '", collections::kTableInitializers,
                                     "' names node '", node, "', which the graph does not have")));
      return nullptr;
    }
    initializers.push_back(found);
  }
  return ops::NoOp(scope.WithOpName(name).WithControlDependencies(initializers));
}

IdTableWithHashBuckets::IdTableWithHashBuckets(const Scope& scope, StaticHashTable table,
                                               int64_t num_oov_buckets)
    : table_(std::move(table)), num_oov_buckets_(num_oov_buckets) {
  if (num_oov_buckets < 0 || (num_oov_buckets == 0 && !table_.valid() && scope.ok())) {
    scope.UpdateStatus(InvalidArgument("num_oov_buckets must be at least ", table_.valid() ? 0 : 1,
                                       ", got ", num_oov_buckets));
  }
  if (table_.valid() &&
      (table_.key_type() != ElementType::kString || table_.value_type() != ElementType::kInt64)) {
    scope.UpdateStatus(InvalidArgument("ids are int64, of strings, but the table is from ",
                                       ElementTypeName(table_.key_type()), " to ",
                                       ElementTypeName(table_.value_type())));
  }
}

Output IdTableWithHashBuckets::Lookup(const Scope& scope, const Input& keys) const {
  const Output words = keys.ToOutput(scope);
  if (num_oov_buckets_ == 0) return table_.Lookup(scope, words);
  const Output bucket = ops::StringToHashBucketFast(scope, words, num_oov_buckets_);
  if (!table_.valid()) return bucket;
  const Output ids = table_.Lookup(scope, words);
  const Output after = ops::AddV2(scope, bucket, table_.Size(scope));
  return ops::SelectV2(scope, ops::NotEqual(scope, ids, table_.default_value()), ids, after);
}

Output IdTableWithHashBuckets::Size(const Scope& scope) const {
  const Output buckets = Const(scope, num_oov_buckets_);
  return table_.valid() ? ops::AddV2(scope, table_.Size(scope), buckets) : buckets;
}

namespace {

IdTableWithHashBuckets IndexTable(const Scope& scope, const TableInitializer& initializer,
                                  const IndexTableOptions& options) {
  StaticHashTable table(scope, initializer, options.default_value,
                        {.name = options.name.empty() ? "string_to_index" : options.name});
  return IdTableWithHashBuckets(scope, std::move(table), options.num_oov_buckets);
}

}  // namespace

IdTableWithHashBuckets IndexTableFromFile(const Scope& scope, const Input& vocabulary_file,
                                          const IndexTableOptions& options) {
  return IndexTable(
      scope,
      TextFileInitializer(vocabulary_file, ElementType::kString, options.key_column_index,
                          ElementType::kInt64, options.value_column_index,
                          {.vocab_size = options.vocab_size, .delimiter = options.delimiter}),
      options);
}

IdTableWithHashBuckets IndexTableFromTensor(const Scope& scope, const Tensor& vocabulary,
                                            const IndexTableOptions& options) {
  if (!CheckVocabulary(scope, vocabulary)) return {};
  return IndexTable(scope, KeyValueTensorInitializer(vocabulary, Range(vocabulary.num_elements())),
                    options);
}

StaticHashTable IndexToStringTableFromFile(const Scope& scope, const Input& vocabulary_file,
                                           const std::string& default_value, int64_t vocab_size) {
  return StaticHashTable(
      scope,
      TextFileInitializer(vocabulary_file, ElementType::kInt64, TextFileInitializer::kLineNumber,
                          ElementType::kString, TextFileInitializer::kWholeLine,
                          {.vocab_size = vocab_size}),
      default_value, {.name = "index_to_string"});
}

StaticHashTable IndexToStringTableFromTensor(const Scope& scope, const Tensor& vocabulary,
                                             const std::string& default_value) {
  if (!CheckVocabulary(scope, vocabulary)) return {};
  return StaticHashTable(scope,
                         KeyValueTensorInitializer(Range(vocabulary.num_elements()), vocabulary),
                         default_value, {.name = "index_to_string"});
}

// --- tables that change --------------------------------------------------------------------------

Node* MutableTableBase::Insert(const Scope& scope, const Input& keys, const Input& values) const {
  return ops::LookupTableInsertV2(scope, handle_, keys, values);
}

Node* MutableTableBase::Remove(const Scope& scope, const Input& keys) const {
  return ops::LookupTableRemoveV2(scope, handle_, keys);
}

Node* MutableTableBase::Import(const Scope& scope, const Input& keys, const Input& values) const {
  return ops::LookupTableImportV2(scope, handle_, keys, values);
}

namespace {

/// The table that `node` makes; its types are outputs of the node's attributes.
Saveable SaveableOf(Node* node) {
  const auto key_type = node->attrs().GetOr<ElementType>("key_dtype", ElementType::kInvalid);
  const auto value_type = node->attrs().GetOr<ElementType>("value_dtype", ElementType::kInvalid);
  const std::string& name = node->name();
  return Saveable(
      name, node, {{name + "-keys", "", key_type, {}}, {name + "-values", "", value_type, {}}},
      [node, key_type, value_type](const Scope& scope) -> std::vector<Output> {
        const auto exported = ops::LookupTableExportV2(scope, node, key_type, value_type);
        return {exported.keys, exported.values};
      },
      [node](const Scope& scope, absl::Span<const Output> tensors) -> Node* {
        return ops::LookupTableImportV2(scope, node, tensors[0], tensors[1]);
      });
}

}  // namespace

Saveable MutableTableBase::saveable() const {
  return valid() ? SaveableOf(handle_.node) : Saveable("", nullptr, {}, nullptr, nullptr);
}

void MutableTableBase::AddToSaveables(const Scope& scope, bool checkpoint) const {
  if (!checkpoint || !scope.ok() || !valid()) return;
  scope.graph()->AddToCollection(collections::kSaveableObjects, handle_.node->name());
}

absl::StatusOr<std::vector<Saveable>> MutableTableBase::SaveablesOf(const Graph& graph) {
  std::vector<Saveable> saveables;
  for (const std::string& name : graph.Collection(collections::kSaveableObjects)) {
    Node* const node = graph.FindNode(name);
    if (node == nullptr || !node->attrs().Has("key_dtype")) {
      return InvalidArgument("collection '", collections::kSaveableObjects, "' names '", name,
                             "', which is no table of the graph");
    }
    saveables.push_back(SaveableOf(node));
  }
  return saveables;
}

MutableHashTable::MutableHashTable(const Scope& scope, ElementType key_type, ElementType value_type,
                                   const Tensor& default_value,
                                   const MutableTableOptions& options) {
  key_type_ = key_type;
  value_type_ = value_type;
  const std::string name = options.name.empty() ? "MutableHashTable" : options.name;
  const bool by_node_name = options.checkpoint && options.shared_name.empty();
  if (default_value.rank() == 0) {
    handle_ = ops::MutableHashTableV2(scope.WithOpName(name), key_type, value_type,
                                      {.container = scope.container(),
                                       .shared_name = options.shared_name,
                                       .use_node_name_sharing = by_node_name});
  } else {
    handle_ = ops::MutableHashTableOfTensorsV2(scope.WithOpName(name), key_type, value_type,
                                               {.container = scope.container(),
                                                .shared_name = options.shared_name,
                                                .use_node_name_sharing = by_node_name,
                                                .value_shape = default_value.shape()});
  }
  default_value_ = Const(scope.WithOpName(name + "_default"), default_value);
  AddToSaveables(scope, options.checkpoint);
}

DenseHashTable::DenseHashTable(const Scope& scope, ElementType key_type, ElementType value_type,
                               const Tensor& default_value, const Input& empty_key,
                               const Input& deleted_key, const MutableTableOptions& options,
                               int64_t initial_num_buckets) {
  key_type_ = key_type;
  value_type_ = value_type;
  const std::string name = options.name.empty() ? "MutableDenseHashTable" : options.name;
  if (scope.ok() && (TypeOf(empty_key) != key_type || TypeOf(deleted_key) != key_type)) {
    scope.UpdateStatus(
        InvalidArgument("empty_key and deleted_key must be of type ", ElementTypeName(key_type)));
    return;
  }
  handle_ = ops::MutableDenseHashTableV2(
      scope.WithOpName(name), empty_key, deleted_key, value_type,
      {.container = scope.container(),
       .shared_name = options.shared_name,
       .use_node_name_sharing = options.checkpoint && options.shared_name.empty(),
       .value_shape = default_value.shape(),
       .initial_num_buckets = initial_num_buckets});
  default_value_ = Const(scope.WithOpName(name + "_default"), default_value);
  AddToSaveables(scope, options.checkpoint);
}

}  // namespace troupe
