
class {{ name }} {{ reset }} {{ device_ids }}{% for product in products %} {{ product }}{% endfor %}
{%- for range in nodes %}
nodes {{ range.prefix }} {{ range.digits }} {{ range.first }} {{ range.last }} {{ range.suffix }}
{%- endfor %}
{%- for gpu in gpus %}
gpu {{ gpu.index }} {{ gpu.mode }}{% for instance in gpu.instances %} {{ instance }}{% endfor %}
{%- endfor %}
