// Reading YAML.
namespace trainctl {}
